/**
 * Brings the units of a chunk to its decoder, a few at a time: each stays in memory until the decoder has read it.
 */
import type { Range } from '../../decode/index.ts';
import { DECODE_UNITS_AHEAD } from '../limits.ts';
import type { HeldUnit, Turn } from '../raw/stored-file.ts';
import type { ChunkSource, DecodeFlow } from './chunk-decoding.ts';

export interface FeedEvents {
  /** The decoder has more to read. */
  fed(): void;
  failed(error: Error): void;
}

export class ChunkFeed {
  readonly #source: ChunkSource;
  readonly #turn: Turn;
  readonly #flow: DecodeFlow;
  readonly #events: FeedEvents;
  /** Units that the decoder reads, and the chunk's bytes up to which each reaches. */
  #held: { unit: HeldUnit; end: number }[] = [];
  #nextUnit: number;
  #isFed = false;
  #isClosed = false;
  #cancelHold: (() => void) | undefined;

  /** `turn` is when the chunk was asked for. */
  constructor(source: ChunkSource, turn: Turn, flow: DecodeFlow, events: FeedEvents) {
    this.#source = source;
    this.#turn = turn;
    this.#flow = flow;
    this.#events = events;
    this.#nextUnit = source.stored.units.find(source.spec.fileOffset);
  }

  /** There is something to decode: waking a decoder costs more than it does in vain. */
  get hasInput(): boolean {
    return this.#held.length > 0 || this.#isFed;
  }

  /** Asks for units as far ahead as it may. */
  holdNext(): void {
    const { stored, spec } = this.#source;
    const end = spec.fileOffset + spec.byteLength;
    while (this.#held.length < DECODE_UNITS_AHEAD && this.#cancelHold === undefined && !this.#isClosed) {
      if (this.#nextUnit >= stored.units.count) return;
      const range = stored.units.range(this.#nextUnit);
      if (range.start >= end) return;
      let isOver = false;
      const cancel = stored.hold(this.#nextUnit++, this.#turn, (error, held) => {
        isOver = true;
        this.#cancelHold = undefined;
        if (error !== undefined) this.#events.failed(error);
        else this.#feed(range, held!);
        this.holdNext();
      });
      if (cancel !== undefined && !isOver) this.#cancelHold = cancel;
    }
  }

  #feed(range: Range, unit: HeldUnit): void {
    if (this.#isClosed) {
      unit.release();
      return;
    }
    const { fileOffset, byteLength } = this.#source.spec;
    const start = Math.max(range.start, fileOffset);
    const end = Math.min(range.end, fileOffset + byteLength);
    this.#held.push({ unit, end: end - fileOffset });
    this.#isFed = end === fileOffset + byteLength;
    this.#flow.add({ address: unit.address + (start - range.start), start: start - fileOffset, end: end - fileOffset });
    this.#flow.arrived(end - fileOffset);
    this.#events.fed();
  }

  /** The decoder is done with the chunk's first `bytes`. */
  consumed(bytes: number): void {
    while (this.#held.length > 0 && this.#held[0]!.end <= bytes) this.#held.shift()!.unit.release(true);
    this.holdNext();
  }

  /** Nothing more is asked for. */
  stop(): void {
    this.#isClosed = true;
    this.#cancelHold?.();
    this.#cancelHold = undefined;
  }

  /** The decoder reads nothing any more; with `done` nobody will want the units again. */
  close(done: boolean): void {
    this.stop();
    for (const { unit } of this.#held.splice(0)) unit.release(done);
  }
}

/** The units that hold a chunk's bytes. */
export function unitsOfChunk({ stored, spec }: ChunkSource): number[] {
  const units: number[] = [];
  const last = stored.units.find(spec.fileOffset + spec.byteLength - 1);
  for (let unit = stored.units.find(spec.fileOffset); unit <= last; unit++) units.push(unit);
  return units;
}
