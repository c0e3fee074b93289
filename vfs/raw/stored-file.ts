/**
 * One version of a file in the range store: which units a read needs, made as they are first named. The bytes are the
 * store's (range-store.ts).
 */
import type { Range } from '../../decode/index.ts';
import type { FetchPart, FileVersion, RangeFetch } from '../../fetcher/index.ts';
import type { FileUnits } from './units.ts';

/** Called once: with an error, or with views of exactly the asked bytes, valid during the call. */
export type BytesReady = (error: Error | undefined, views: readonly Uint8Array[]) => void;

/** A piece of a file: absent, on its way, or there. */
export interface Unit extends Range {
  readonly file: StoredFile;
  readonly number: number;
  /** Bytes from its start that are in memory. */
  landed: number;
  fetch: RangeFetch | undefined;
  part: FetchPart | undefined;
  /** Readers and decoders that it must not leave under. */
  pins: number;
  /** Bytes from its start up to the last that was read. */
  readTo: number;
  failure: Error | undefined;
}

/** What a file needs of the store. */
export interface UnitKeeper {
  read(units: readonly Unit[], range: Range, done: BytesReady, turn?: Turn): (() => void) | undefined;
  prefetch(units: readonly Unit[]): void;
  /** The pool's address of a unit that is in memory or on its way. */
  addressOf(unit: Unit): number;
  pin(unit: Unit): void;
  unpin(unit: Unit, isDone?: boolean): void;
  drop(file: StoredFile): void;
}

/** Whoever's turn it is: of a read on behalf of something that began before, that one's (memory-turns.ts). */
export interface Turn {
  readonly turn: number;
}

/** A unit that stays in memory until it is released. */
export interface HeldUnit {
  /** The pool's address of its first byte. */
  readonly address: number;
  /** With `done`, nobody will want its bytes again soon: they leave unless somebody else reads them. */
  release(done?: boolean): void;
}

/** One version of a file in the store. */
export class StoredFile {
  readonly version: FileVersion;
  readonly units: FileUnits;
  readonly #store: UnitKeeper;
  readonly #made = new Map<number, Unit>();
  isClosed = false;

  constructor(store: UnitKeeper, version: FileVersion, units: FileUnits) {
    this.#store = store;
    this.version = version;
    this.units = units;
  }

  /**
   * Bytes [offset, offset + length) of the file, which has them: answered within the call when they are in memory.
   * Otherwise returns what cancels the wait.
   */
  read(offset: number, length: number, done: BytesReady): (() => void) | undefined {
    const range = { start: offset, end: offset + length };
    const units: Unit[] = [];
    const last = this.units.find(range.end - 1);
    for (let number = this.units.find(offset); number <= last; number++) units.push(this.#unit(number));
    return this.#store.read(units, range, done);
  }

  /** Fetches units ahead, in this order. */
  prefetch(numbers: readonly number[]): void {
    this.#store.prefetch(numbers.map((number) => this.#unit(number)));
  }

  #unit(number: number): Unit {
    const known = this.#made.get(number);
    if (known !== undefined) return known;
    const { start, end } = this.units.range(number);
    const none = { landed: 0, fetch: undefined, part: undefined, pins: 0, readTo: 0, failure: undefined };
    const unit: Unit = { start, end, file: this, number, ...none };
    this.#made.set(number, unit);
    return unit;
  }

  /** Brings a unit into memory and keeps it there; `done` may be called within the call. Returns what cancels the wait. */
  hold(
    number: number,
    turn: Turn,
    done: (error: Error | undefined, held?: HeldUnit) => void,
  ): (() => void) | undefined {
    const unit = this.#unit(number);
    const ready = (error: Error | undefined): void => {
      if (error !== undefined) {
        done(error);
        return;
      }
      this.#store.pin(unit);
      let isHeld = true;
      const release = (isDone = false): void => {
        if (!isHeld) return;
        isHeld = false;
        this.#store.unpin(unit, isDone);
      };
      done(undefined, { address: this.#store.addressOf(unit), release });
    };
    return this.#store.read([unit], unit, ready, turn);
  }

  /** Gives up what is in memory of it; what is being read goes when it has been. */
  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#store.drop(this);
  }
}
