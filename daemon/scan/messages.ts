/**
 * What the scheduler and its decoder streams say to each other. Everything is plain data; bytes stay in the pool and
 * only their addresses travel. Arrival is not a message: the producer writes a chunk's mark (64-byte lines that have
 * arrived) into its word in the pool and rings the stream's bell.
 */
import type { ChunkSpec, DecodeError, InputPiece, Segment } from '../../decode/index.ts';

/** Handed to a decoder stream when it starts. */
export interface StreamStart {
  readonly memory: WebAssembly.Memory;
  /** Index (of u32 words) of the bell that wakes this stream. */
  readonly bell: number;
  readonly verifyChecksums: boolean;
}

export type ToStream =
  /** A new flow: one column chunk. `mark` is the index of its mark's word. */
  | { readonly kind: 'open'; readonly flow: number; readonly spec: ChunkSpec; readonly mark: number }
  | { readonly kind: 'piece'; readonly flow: number; readonly piece: InputPiece }
  /** Decode until the next segment is out. */
  | { readonly kind: 'run'; readonly flow: number }
  /** Give up a flow and everything it holds. */
  | { readonly kind: 'close'; readonly flow: number }
  | { readonly kind: 'exit' };

/** A DecodeError's parts, which survive being posted. */
export interface PostedError {
  readonly code: DecodeError['code'];
  readonly reason: string;
  readonly place: DecodeError['place'];
}

export type FromStream =
  | {
      readonly kind: 'segment';
      readonly flow: number;
      readonly segment: Segment | undefined;
      /** Chunk bytes below this are not needed any more. */
      readonly consumed: number;
      /** Every value is out: the flow is closed and holds nothing. */
      readonly end: boolean;
      /** Milliseconds of decoding since the last message of this flow. */
      readonly busyMs: number;
    }
  /** A piece has been used up while the flow still wants more. */
  | { readonly kind: 'consumed'; readonly flow: number; readonly consumed: number }
  /** A slab of `bytes` did not fit beside the `usedBytes` of the pool then; the flow is idle until it is run again. */
  | {
      readonly kind: 'memory';
      readonly flow: number;
      readonly bytes: number;
      readonly usedBytes: number;
      readonly busyMs: number;
    }
  | { readonly kind: 'error'; readonly flow: number; readonly error: PostedError }
  | { readonly kind: 'closed'; readonly flow: number };
