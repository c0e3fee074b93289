/** What a decoded chunk is made from and with: its source, the seam to decoder threads, the store that keeps it. */
import type { ChunkSpec, InputPiece, Kernels, PlainChunk, Pool, Segment, WindowPlaces } from '../../decode/index.ts';
import type { MemoryTurns } from '../raw/memory-turns.ts';
import type { StoredFile } from '../raw/stored-file.ts';

/** A column chunk being decoded by some thread. */
export interface DecodeFlow {
  readonly running: boolean;
  /** Before its first run: where the values go (`ChunkSpec.place`). */
  place(places: WindowPlaces): void;
  add(piece: InputPiece): void;
  arrived(bytes: number): void;
  run(): void;
  close(): void;
}

/** What the owner of a flow hears; after `ended` or `failed` nothing more comes. */
export interface DecodeFlowEvents {
  segment(segment: Segment): void;
  idle(): void;
  consumed(bytes: number): void;
  memoryShort(bytes: number, usedBytes: number): void;
  ended(complete: boolean): void;
  failed(error: Error): void;
}

/** Decoder threads; undefined when they have all the flows that they can have. Throws what has ended them. */
export interface ChunkDecoding {
  readonly count: number;
  open(spec: ChunkSpec, events: DecodeFlowEvents): DecodeFlow | undefined;
}

/** One chunk of one version. */
export interface ChunkSource {
  readonly stored: StoredFile;
  readonly spec: ChunkSpec;
  readonly pages: PlainChunk;
  /** For messages. */
  readonly group: number;
}

export interface ChunkStoreOptions {
  readonly pool: Pool;
  readonly kernels: Kernels;
  readonly decoding: ChunkDecoding;
  /** Who gets memory when it is short: those of the raw store, whose memory this is too. */
  readonly turns: MemoryTurns;
}
