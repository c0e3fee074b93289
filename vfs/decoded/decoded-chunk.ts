/**
 * One decoded chunk of a mount: absent, being decoded, or in memory whole. Decoder threads read its units from the raw
 * store and give out segments, which become the pages of its image. Readers wait for the pages that they want.
 */
import { DecodeError, freeSegment, type Range, type Segment, WINDOW_SLACK_BYTES } from '../../decode/index.ts';
import { FetchError } from '../../fetcher/index.ts';
import { DECODER_QUIET_MS } from '../limits.ts';
import type { Need } from '../raw/memory-turns.ts';
import type { BytesReady } from '../raw/stored-file.ts';
import type { ChunkSource, ChunkStoreOptions, DecodeFlow } from './chunk-decoding.ts';
import { ChunkFeed } from './chunk-feed.ts';
import { ChunkImage } from './chunk-image.ts';
import { PAGE_BYTES } from './layout.ts';

/** What a chunk needs of the store that keeps it. */
export interface ChunkKeeper {
  readonly options: ChunkStoreOptions;
  readonly closedBy: Error | undefined;
  readonly counts: { decoded: number; failed: number; there: number; late: number; absent: number };
  touch(chunk: DecodedChunk): void;
  /** A place for an image, at the expense of what nobody reads; 0 when there is none now. */
  allocate(bytes: number): number;
  /** Its image is being made, and is made, or will not be. */
  began(chunk: DecodedChunk): void;
  ended(chunk: DecodedChunk, isKept: boolean): void;
  /** It waits for a flow: `retry` follows when one has ended. */
  awaitFlow(chunk: DecodedChunk): void;
  flowEnded(): void;
  /** Its image was freed. */
  left(chunk: DecodedChunk): void;
}

interface Waiter {
  readonly range: Range;
  readonly done: BytesReady;
}

export class DecodedChunk implements Need {
  readonly source: ChunkSource;
  readonly #store: ChunkKeeper;
  readonly #onDecoded: () => void;
  #image: ChunkImage | undefined;
  /** There before the image is, and gone when that is whole. */
  #flow: DecodeFlow | undefined;
  #feed: ChunkFeed | undefined;
  #waiters: Waiter[] = [];
  #pins = 0;
  /** Bytes from its start up to the last that was read. */
  #readTo = 0;
  isOpen = true;
  /** A copy is in the kernel's cache: this one is the first to go. */
  isElsewhere = false;
  /** When it was asked for. */
  turn = 0;
  /** It was asked for, and is not there whole. */
  #isBegun = false;
  /** Its flow is being closed, because others came before or nobody waits for it. */
  isGivingWay = false;
  /** A run of the flow found no memory. */
  #isShort = false;
  /** A run of the flow was short, and another one has begun. */
  #isTrying = false;
  /** When its decoder was last heard of. */
  #newsMs = 0;
  #failure: Error | undefined;

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

  /** Nothing of it is in memory, nor asked for. */
  get isAbsent(): boolean {
    return this.#image === undefined && !this.#isBegun;
  }

  /** In memory whole, and nobody needs it now. */
  get isIdle(): boolean {
    return this.#flow === undefined && this.#image !== undefined && this.#pins === 0 && this.#waiters.length === 0;
  }

  /** Being made, and what it has would be of use to others. */
  get holdsMemory(): boolean {
    return this.#image !== undefined && !this.#image.isComplete && !this.isGivingWay;
  }

  get isTrying(): boolean {
    return this.#isTrying && this.isAtWork;
  }

  /** Its decoder is likely to go on by itself. */
  get isAtWork(): boolean {
    if (this.isComplete) return this.#flow !== undefined || this.#pins > 0;
    return this.#flow?.running === true && performance.now() - this.#newsMs < DECODER_QUIET_MS;
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
    if (this.#waiters.length === 1) this.#ask();
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
    if (!this.isIdle) return;
    if (!this.isOpen) this.giveUp();
    else if (this.#store.options.turns.isShort) this.#store.options.turns.freed();
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

  /** Somebody waits for it: it is made now, or when it is its turn. */
  #ask(): void {
    const { turns } = this.#store.options;
    const turn = turns.nextTurn();
    if (this.#isBegun) {
      // it may be on its way for nobody so far
      this.turn = Math.min(this.turn, turn);
      return;
    }
    this.#begin(turn);
    if (turns.isBehind(this)) turns.wait(this);
    else this.#start();
  }

  /** Begins to decode it for nobody yet, if there is room. */
  startAhead(): void {
    if (!this.isAbsent || !this.isOpen) return;
    this.#begin(this.#store.options.turns.nextTurnAhead());
    this.#start();
  }

  #begin(turn: number): void {
    this.turn = turn;
    this.#isBegun = true;
    this.#failure = undefined;
    this.#store.options.turns.begin(this);
  }

  /** It is there, or will not be. */
  #end(): void {
    this.#isBegun = false;
    this.#store.options.turns.end(this);
  }

  #start(): void {
    const { pool, kernels, turns } = this.#store.options;
    const { pages } = this.source;
    this.#flow ??= this.#openFlow();
    if (this.#flow === undefined) return;
    const slab = this.#store.allocate(this.slabBytes);
    if (slab === 0) {
      if (this.#waiters.length > 0) turns.wait(this);
      else this.giveWay();
      return;
    }
    const address = slab + WINDOW_SLACK_BYTES;
    pool.u8.fill(0, address + pages.length, address + this.imageBytes);
    this.#image = new ChunkImage(pool, kernels, pages, address);
    if (this.#image.places !== undefined) this.#flow.place(this.#image.places);
    this.isElsewhere = false;
    this.#readTo = 0;
    this.#newsMs = performance.now();
    this.#store.began(this);
    this.#feed = new ChunkFeed(this.source, this, this.#flow, {
      fed: () => {
        this.#newsMs = performance.now();
        this.#run();
      },
      failed: (error) => this.#abort(error),
    });
    this.#feed.holdNext();
  }

  /** Undefined when there is none now, or never will be. */
  #openFlow(): DecodeFlow | undefined {
    try {
      const flow = this.#store.options.decoding.open(this.source.spec, {
        segment: (segment) => this.#take(segment),
        idle: () => this.#run(),
        consumed: (bytes) => {
          this.#progress();
          this.#feed?.consumed(bytes);
        },
        memoryShort: () => this.#short(),
        ended: () => this.#ended(),
        failed: (error) => this.#ended(error),
      });
      if (flow !== undefined) return flow;
    } catch (error) {
      this.#failure = error instanceof Error ? error : new Error(String(error));
      this.#ended();
      return undefined;
    }
    if (this.#waiters.length > 0) this.#store.awaitFlow(this);
    else this.#end();
    return undefined;
  }

  /** Lets the decoder go on, when it has something to go on with. */
  #run(): void {
    if (!this.#feed?.hasInput || this.isGivingWay) return;
    if (this.#flow !== undefined && !this.#flow.running && !this.#isShort) this.#flow.run();
  }

  /** Tries again what found no memory, or no flow. */
  retry(): void {
    if (this.isGivingWay || !this.#isBegun) return;
    if (this.#image !== undefined) {
      this.#isTrying = this.#isShort;
      this.#isShort = false;
      if (!this.#isTrying) return;
      this.#store.options.turns.wait(this);
      this.#newsMs = performance.now();
      this.#run();
    } else if (this.#waiters.length > 0 && this.isOpen) this.#start();
    else this.giveWay();
  }

  /** The decoder has got on. */
  #progress(): void {
    this.#newsMs = performance.now();
    if (!this.#isTrying) return;
    this.#isTrying = false;
    this.#store.options.turns.satisfied(this);
  }

  #short(): void {
    if (this.isGivingWay) return;
    this.#isShort = true;
    this.#isTrying = false;
    this.#newsMs = performance.now();
    if (this.#waiters.length > 0) this.#store.options.turns.wait(this);
    else this.giveWay();
  }

  giveWay(): void {
    if (this.isGivingWay) return;
    this.isGivingWay = true;
    this.#feed?.stop();
    if (this.#flow === undefined) this.#ended();
    else this.#flow.close();
  }

  fail(): void {
    const { pool } = this.#store.options;
    const room = `no room to decode a column chunk of ${this.imageBytes} bytes beside the ${pool.usedBytes} in use`;
    this.#abort(new FetchError('MEMORY', `${room}; use a larger --memory`));
  }

  #take(segment: Segment): void {
    const image = this.#image!;
    const { pool } = this.#store.options;
    this.#progress();
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

  /** Ends the flow because of an error; `#ended` follows. */
  #abort(error: Error): void {
    this.#failure ??= error;
    this.#feed?.stop();
    if (this.#flow === undefined) this.#ended();
    else this.#flow.close();
  }

  /** The flow is over, or there was none. */
  #ended(error?: Error): void {
    const hadImage = this.#image !== undefined;
    const isWhole = this.isComplete;
    const gaveWay = this.isGivingWay;
    this.#flow = undefined;
    this.isGivingWay = false;
    this.#isShort = false;
    this.#isTrying = false;
    // the image is all that anybody wants of them
    this.#feed?.close(isWhole);
    this.#feed = undefined;
    const failure = this.#failure ?? error ?? (isWhole || gaveWay ? undefined : this.#tooShort());
    const { counts, options } = this.#store;
    if (hadImage) this.#store.ended(this, isWhole && failure === undefined);
    this.#store.flowEnded();
    if (failure !== undefined) {
      counts.failed++;
      this.#free();
      this.#end();
      this.#answerAll(failure);
    } else if (isWhole) {
      counts.decoded++;
      this.#end();
      this.#onDecoded();
      if (!this.isOpen && this.isIdle) this.giveUp();
    } else {
      this.#free();
      if (this.#waiters.length > 0 && this.isOpen) options.turns.wait(this);
      else this.#end();
    }
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
    if (this.#isBegun) this.giveWay();
    else if (this.isIdle) this.giveUp();
  }
}
