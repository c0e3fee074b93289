/**
 * One planned request on its way into the pool: a slab, the parts of it that column chunks wait for, and an account
 * of what became of its bytes. Parts are told as soon as their own bytes are there, not when the request ends; the
 * slab goes back when the transport is done with it and every part has been released.
 */
import type { Pool } from '../decode/index.ts';
import type { ByteLedger, WasteReason } from './ledger.ts';
import type { FileVersion, Transport } from './transport/transport.ts';

/** File bytes [start, end) of a request that somebody waits for. */
export interface FetchPart {
  readonly start: number;
  readonly end: number;
  /** Bytes from the part's start that have landed; called with growing numbers. */
  arrived(bytes: number): void;
}

interface PartState {
  landed: number;
  /** Set when the part is done with: bytes consumed, and where the rest goes. */
  released: { readonly used: number; readonly reason: WasteReason } | undefined;
}

/** The slab of a request, whose bytes are at its end. */
interface Slab {
  readonly address: number;
  readonly bytes: number;
}

export class RangeFetch {
  /** Address of the byte at `start`. */
  readonly address: number;
  readonly start: number;
  readonly end: number;
  /** Settles when the transport is done with the slab; undefined on success, else what went wrong. */
  readonly done: Promise<Error | undefined>;
  readonly #pool: Pool;
  readonly #slab: Slab;
  readonly #ledger: ByteLedger;
  readonly #parts: Map<FetchPart, PartState>;
  readonly #onFreed: () => void;
  #unreleased: number;
  #landed = 0;
  #settled = false;
  #failed = false;

  private constructor(
    pool: Pool,
    ledger: ByteLedger,
    range: { start: number; end: number },
    slab: Slab,
    parts: readonly FetchPart[],
    read: (into: Uint8Array, onArrived: (bytes: number) => void) => Promise<void>,
    onFreed: () => void,
  ) {
    this.#pool = pool;
    this.#slab = slab;
    this.#ledger = ledger;
    this.#onFreed = onFreed;
    this.start = range.start;
    this.end = range.end;
    this.address = slab.address + slab.bytes - (range.end - range.start);
    this.#parts = new Map(parts.map((part) => [part, { landed: 0, released: undefined }]));
    this.#unreleased = parts.length;
    const into = pool.u8.subarray(this.address, slab.address + slab.bytes);
    this.done = read(into, (bytes) => this.#arrive(bytes)).then(
      () => {
        this.#arrive(this.end - this.start);
        this.#settle(false);
        return undefined;
      },
      (error: unknown) => {
        this.#settle(true);
        return error instanceof Error ? error : new Error(String(error));
      },
    );
  }

  /** Starts the request; undefined when the pool has no room for it now. `onFreed` is called when its slab went back. */
  static start(options: {
    pool: Pool;
    ledger: ByteLedger;
    transport: Transport;
    file: FileVersion;
    range: { start: number; end: number };
    parts: readonly FetchPart[];
    signal: AbortSignal;
    onFreed: () => void;
    /** A power of two, of which the address is to be as far from a multiple as the byte is in its file. */
    alignment?: number;
  }): RangeFetch | undefined {
    const { pool, transport, file, range, signal, alignment = 1 } = options;
    const bytes = (range.start % alignment) + range.end - range.start;
    const address = pool.allocate(bytes);
    if (address === 0) return undefined;
    const read = (into: Uint8Array, onArrived: (bytes: number) => void): Promise<void> =>
      transport.read(file, range.start, into, { signal, onArrived });
    return new RangeFetch(pool, options.ledger, range, { address, bytes }, options.parts, read, options.onFreed);
  }

  get isSettled(): boolean {
    return this.#settled;
  }

  #arrive(bytes: number): void {
    if (bytes <= this.#landed) return;
    this.#landed = bytes;
    for (const [part, state] of this.#parts) {
      const landed = Math.min(part.end - part.start, this.start + bytes - part.start);
      if (landed <= state.landed) continue;
      state.landed = landed;
      if (state.released === undefined) part.arrived(landed);
    }
  }

  #settle(failed: boolean): void {
    this.#settled = true;
    this.#failed = failed;
    this.#freeIfOver();
  }

  /**
   * `part` is done with: its first `used` bytes were consumed, the rest of what landed goes to `reason`. Once only.
   */
  release(part: FetchPart, used: number, reason: WasteReason): void {
    const state = this.#parts.get(part);
    if (state === undefined || state.released !== undefined) throw new Error('a fetched part was released twice');
    state.released = { used, reason };
    this.#unreleased--;
    this.#freeIfOver();
  }

  #freeIfOver(): void {
    if (!this.#settled || this.#unreleased > 0) return;
    let inParts = 0;
    for (const { landed, released } of this.#parts.values()) {
      const { used, reason } = released!;
      inParts += landed;
      const consumed = Math.min(used, landed);
      this.#ledger.used += consumed;
      this.#ledger.wasted[this.#failed && reason === 'speculation' ? 'cancelled' : reason] += landed - consumed;
    }
    this.#ledger.wasted.gap += this.#landed - inParts;
    this.#pool.free(this.#slab.address, this.#slab.bytes);
    this.#onFreed();
  }
}
