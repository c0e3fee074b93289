/**
 * One decoded chunk of a mount: absent, being decoded, or in memory whole. Decoder threads read its units from the raw
 * store and give out segments, which become the pages of its image. Readers wait for the pages that they want.
 */
import {
  type ChunkSpec,
  DecodeError,
  freeSegment,
  type InputPiece,
  type Kernels,
  type PlainChunk,
  type Pool,
  type Range,
  type Segment,
  WINDOW_SLACK_BYTES,
} from '../../decode/index.ts';
import { FetchError } from '../../fetcher/index.ts';
import { DECODE_UNITS_AHEAD } from '../limits.ts';
import type { BytesReady, HeldUnit, StoredFile } from '../raw/stored-file.ts';
import { ChunkImage } from './chunk-image.ts';
import { PAGE_BYTES } from './layout.ts';

/** A column chunk being decoded by some thread. */
export interface DecodeFlow {
  readonly running: boolean;
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

/** Decoder threads; undefined when they have all the flows that they can have. */
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
  /** Frees memory of somebody else's and says whether it did. */
  readonly makeRoom: () => boolean;
  /** Memory came back. */
  readonly onFreed: () => void;
}

/** What a chunk needs of the store that keeps it. */
export interface ChunkKeeper {
  readonly options: ChunkStoreOptions;
  readonly closedBy: Error | undefined;
  readonly counts: { decoded: number; failed: number; there: number; late: number; absent: number };
  touch(chunk: DecodedChunk): void;
  /** A place for an image, at the expense of what nobody reads; 0 when there is none now. */
  allocate(bytes: number): number;
  giveUpOne(): boolean;
  began(chunk: DecodedChunk): void;
  ended(chunk: DecodedChunk, isKept: boolean): void;
  left(chunk: DecodedChunk): void;
  /** Whether something else is being decoded or read, so that memory will come back without help. */
  hasOthers(than: DecodedChunk): boolean;
}

interface Waiter {
  readonly range: Range;
  readonly done: BytesReady;
}

export class DecodedChunk {
  readonly source: ChunkSource;
  readonly #store: ChunkKeeper;
  readonly #onDecoded: () => void;
  #image: ChunkImage | undefined;
  #flow: DecodeFlow | undefined;
  #waiters: Waiter[] = [];
  #pins = 0;
  /** Bytes from its start up to the last that was read. */
  #readTo = 0;
  isOpen = true;
  /** A copy is in the kernel's cache: this one is the first to go. */
  isElsewhere = false;
  /** A run of the flow found no memory. */
  #isShort = false;
  #failure: Error | undefined;
  #cancelHold: (() => void) | undefined;
  /** Units that the decoder reads, and the chunk's bytes up to which each reaches. */
  #held: { unit: HeldUnit; end: number }[] = [];
  #nextUnit = 0;
  /** The decoder has all of the chunk's bytes. */
  #isFed = false;

  /** `onDecoded` is called whenever the chunk has become whole. */
  constructor(store: ChunkKeeper, source: ChunkSource, onDecoded: () => void) {
    this.#store = store;
    this.source = source;
    this.#onDecoded = onDecoded;
  }

  /** Bytes of its image in the pool: whole pages. */
  get imageBytes(): number {
    return Math.ceil(this.source.pages.length / PAGE_BYTES) * PAGE_BYTES;
  }

  /** Bytes of the pool that it takes. */
  get slabBytes(): number {
    return this.imageBytes + 2 * WINDOW_SLACK_BYTES;
  }

  /** Nothing of it is in memory, nor on its way. */
  get isAbsent(): boolean {
    return this.#image === undefined;
  }

  /** In memory whole, and nobody needs it now. */
  get isIdle(): boolean {
    return this.#flow === undefined && this.#image !== undefined && this.#pins === 0 && this.#waiters.length === 0;
  }

  get isComplete(): boolean {
    return this.#image?.isComplete ?? false;
  }

  get isReadThrough(): boolean {
    return this.isElsewhere || this.#readTo >= this.source.pages.length;
  }

  /** Bytes of the chunk [offset, offset + length); returns what cancels the wait, if there is one. */
  read(offset: number, length: number, done: BytesReady): (() => void) | undefined {
    const { counts, closedBy } = this.#store;
    const range = { start: offset, end: offset + length };
    if (closedBy !== undefined || !this.isOpen) {
      done(closedBy ?? new FetchError('CLOSED', 'the file was closed'), []);
      return undefined;
    }
    this.#store.touch(this);
    if (this.#image !== undefined && this.#image.filled >= range.end) {
      counts.there++;
      this.#answer({ range, done });
      return undefined;
    }
    counts[this.#image === undefined ? 'absent' : 'late']++;
    const waiter = { range, done };
    this.#waiters.push(waiter);
    if (this.#image === undefined) this.start();
    return () => {
      this.#waiters = this.#waiters.filter((one) => one !== waiter);
    };
  }

  /** The address of the whole image, which stays until `unpin`; undefined when it is not there whole. */
  pin(): number | undefined {
    if (!this.isComplete) return undefined;
    this.#pins++;
    return this.#image!.address;
  }

  unpin(): void {
    this.#pins--;
    if (this.isIdle && !this.isOpen) this.giveUp();
  }

  #answer({ range, done }: Waiter): void {
    const { pool } = this.#store.options;
    const { address } = this.#image!;
    this.#readTo = Math.max(this.#readTo, range.end);
    this.#pins++;
    try {
      done(undefined, [pool.u8.subarray(address + range.start, address + range.end)]);
    } finally {
      this.unpin();
    }
  }

  /** The units that hold its bytes. */
  units(): number[] {
    const { stored, spec } = this.source;
    const units: number[] = [];
    const last = stored.units.find(spec.fileOffset + spec.byteLength - 1);
    for (let unit = stored.units.find(spec.fileOffset); unit <= last; unit++) units.push(unit);
    return units;
  }

  /** Begins to decode. */
  start(): void {
    if (this.#image !== undefined || !this.isOpen) return;
    const { pool, kernels } = this.#store.options;
    const { pages } = this.source;
    const slab = this.#store.allocate(this.slabBytes);
    const address = slab + WINDOW_SLACK_BYTES;
    if (slab === 0) {
      const error = `no room for ${this.imageBytes} bytes beside the ${pool.usedBytes} in use; use a larger --memory`;
      this.#answerAll(new FetchError('MEMORY', error));
      return;
    }
    pool.u8.fill(0, address + pages.length, address + this.imageBytes);
    this.#image = new ChunkImage(pool, kernels, pages, address);
    this.isElsewhere = false;
    this.#failure = undefined;
    this.#readTo = 0;
    this.#isFed = false;
    this.#nextUnit = this.source.stored.units.find(this.source.spec.fileOffset);
    this.#store.began(this);
    this.#openFlow();
  }

  #openFlow(): void {
    const { decoding } = this.#store.options;
    const { places } = this.#image!;
    const { spec } = this.source;
    this.#flow = decoding.open(places === undefined ? spec : { ...spec, place: places }, {
      segment: (segment) => this.#take(segment),
      idle: () => this.#run(),
      consumed: (bytes) => this.#consumed(bytes),
      memoryShort: () => this.#short(),
      ended: () => this.#ended(),
      failed: (error) => this.#ended(error),
    });
    if (this.#flow === undefined) {
      this.#isShort = true; // of flows; tried again when another ends
      return;
    }
    this.#isShort = false;
    this.#holdNext();
  }

  /** The next unit of the chunk becomes a piece of the decoder's input. */
  #holdNext(): void {
    const { stored, spec } = this.source;
    const end = spec.fileOffset + spec.byteLength;
    while (this.#held.length < DECODE_UNITS_AHEAD && this.#cancelHold === undefined && this.#flow !== undefined) {
      if (this.#nextUnit >= stored.units.count) return;
      const unit = stored.units.range(this.#nextUnit);
      if (unit.start >= end) return;
      this.#nextUnit++;
      let isOver = false;
      const cancel = stored.hold(this.#nextUnit - 1, (error, held) => {
        isOver = true;
        this.#cancelHold = undefined;
        if (error !== undefined) this.#abort(error);
        else this.#feed(unit, held!);
        this.#holdNext();
      });
      if (cancel !== undefined && !isOver) this.#cancelHold = cancel;
    }
  }

  #feed(range: Range, unit: HeldUnit): void {
    const { fileOffset, byteLength } = this.source.spec;
    const start = Math.max(range.start, fileOffset);
    const end = Math.min(range.end, fileOffset + byteLength);
    if (this.#flow === undefined) {
      unit.release();
      return;
    }
    this.#held.push({ unit, end: end - fileOffset });
    this.#isFed = end === fileOffset + byteLength;
    this.#flow.add({ address: unit.address + (start - range.start), start: start - fileOffset, end: end - fileOffset });
    this.#flow.arrived(end - fileOffset);
    this.#run();
  }

  /** Lets the decoder go on, when it has something to go on with: waking it costs more than it does in vain. */
  #run(): void {
    if (this.#held.length === 0 && !this.#isFed) return;
    if (this.#flow !== undefined && !this.#flow.running && !this.#isShort) this.#flow.run();
  }

  /** Tries again what found no memory, or no flow. */
  retry(): void {
    if (!this.#isShort) return;
    if (this.#flow === undefined) this.#openFlow();
    else {
      this.#isShort = false;
      this.#run();
    }
  }

  #short(): void {
    this.#isShort = true;
    const { makeRoom } = this.#store.options;
    if (makeRoom() || this.#store.giveUpOne()) queueMicrotask(() => this.retry());
    else if (!this.#store.hasOthers(this)) {
      this.#abort(new FetchError('MEMORY', 'no room to decode a column chunk; use a larger --memory'));
    }
  }

  #take(segment: Segment): void {
    const image = this.#image!;
    const { pool } = this.#store.options;
    try {
      if (this.#failure === undefined) image.add(segment);
    } catch (error) {
      this.#abort(error instanceof Error ? error : new Error(String(error)));
    } finally {
      freeSegment(pool, segment);
    }
    if (this.#waiters.length === 0) return;
    const ready = this.#waiters.filter(({ range }) => range.end <= image.filled);
    this.#waiters = this.#waiters.filter(({ range }) => range.end > image.filled);
    for (const waiter of ready) this.#answer(waiter);
  }

  #consumed(bytes: number): void {
    while (this.#held.length > 0 && this.#held[0]!.end <= bytes) this.#held.shift()!.unit.release(true);
    this.#holdNext();
  }

  /** Ends the flow because of an error; `#ended` follows. */
  #abort(error: Error): void {
    this.#failure ??= error;
    this.#cancelHold?.();
    this.#cancelHold = undefined;
    if (this.#flow === undefined) this.#ended();
    else this.#flow.close();
  }

  #ended(error?: Error): void {
    const image = this.#image;
    this.#flow = undefined;
    this.#isShort = false;
    this.#cancelHold?.();
    this.#cancelHold = undefined;
    // the image is all that anybody wants of them
    for (const { unit } of this.#held.splice(0)) unit.release(this.isComplete);
    const failure = this.#failure ?? error ?? (image?.isComplete ? undefined : this.#tooShort());
    const { counts } = this.#store;
    if (failure === undefined) counts.decoded++;
    else counts.failed++;
    this.#store.ended(this, failure === undefined);
    if (failure !== undefined) {
      this.#free();
      this.#answerAll(failure);
      return;
    }
    this.#onDecoded();
    if (!this.isOpen && this.isIdle) this.giveUp();
  }

  #tooShort(): DecodeError {
    const { spec, pages } = this.source;
    return new DecodeError('METADATA', 'the column chunk ends early', {
      column: spec.columnName,
      rowGroup: this.source.group,
      expected: `${pages.rows} rows, as the footer says`,
    });
  }

  #answerAll(error: Error): void {
    for (const { done } of this.#waiters.splice(0)) done(error, []);
  }

  #free(): void {
    const image = this.#image;
    if (image === undefined) return;
    this.#image = undefined;
    this.#store.options.pool.free(image.address - WINDOW_SLACK_BYTES, this.slabBytes);
    this.#store.left(this);
  }

  /** Frees the image of an idle chunk. */
  giveUp(): void {
    this.#free();
  }

  /** Nobody reads it any more; who waits is answered with `error`. */
  close(error: Error): void {
    this.isOpen = false;
    this.#answerAll(error);
    if (this.#flow !== undefined) this.#abort(error);
    else if (this.isIdle) this.giveUp();
  }
}
