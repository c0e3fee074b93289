/**
 * One column chunk of a row group in flight: its flow through a decoder stream, the pieces of it that are in memory,
 * and the decoded segments that wait for their rows to be taken.
 */
import type { ChunkSpec, LeafColumn, Pool, Segment } from '../../decode/index.ts';
import type { FetchPart, RangeFetch, WasteReason } from '../../fetcher/index.ts';
import { PIECES_AHEAD, SEGMENTS_AHEAD } from '../limits.ts';
import { SharedDictionary, SharedSegment } from './segments.ts';
import type { DecoderStreams, Flow } from './streams.ts';

/** Chunk bytes [start, end), on their way into memory or there. */
interface Piece {
  readonly start: number;
  readonly end: number;
  readonly part: FetchPart;
  /** Bytes from its start that are there. */
  landed: number;
  fetch: RangeFetch | undefined;
}

export interface ColumnRunEvents {
  /** Something changed that may let the scan go on. */
  changed(): void;
  failed(error: Error): void;
}

export class ColumnRun {
  readonly column: LeafColumn;
  readonly spec: ChunkSpec;
  /** Rows decoded so far. */
  rowsDecoded = 0;
  /** Bytes that did not fit when the flow last ran; 0 when it was not short. */
  memoryShort = 0;
  ended = false;
  #usedWhenShort = 0;
  readonly #pool: Pool;
  readonly #streams: DecoderStreams;
  readonly #events: ColumnRunEvents;
  readonly #pieces: Piece[] = [];
  readonly #segments: SharedSegment[] = [];
  #flow: Flow | undefined;
  #dictionary: SharedDictionary | undefined;
  readonly #unattached = new Map<FetchPart, Piece>();
  /** Chunk bytes from its start that are there or have been. */
  #published = 0;
  /** Chunk bytes from its start that the decoder does not need any more. */
  #consumed = 0;
  /** Rows of the front segment that were taken. */
  #taken = 0;
  #closing: WasteReason | undefined;

  constructor(pool: Pool, streams: DecoderStreams, column: LeafColumn, spec: ChunkSpec, events: ColumnRunEvents) {
    this.#pool = pool;
    this.#streams = streams;
    this.column = column;
    this.spec = spec;
    this.#events = events;
  }

  /** True while another piece of the chunk may be brought in. */
  get wantsPiece(): boolean {
    return this.#closing === undefined && this.#pieces.length < PIECES_AHEAD;
  }

  get isRunning(): boolean {
    return this.#flow?.running ?? false;
  }

  get isOver(): boolean {
    return this.ended && this.#segments.length === 0;
  }

  /** Milliseconds that its decoder has worked. */
  get busyMs(): number {
    return this.#flow?.busyMs ?? 0;
  }

  /** Rows that can be taken from the front segment. */
  get frontRows(): number {
    const front = this.#segments[0];
    return front === undefined ? 0 : front.segment.rows - this.#taken;
  }

  /** Chunk bytes [start, end) as a part of a request, from file offset `fileStart` on; `attach` it when that began. */
  part(start: number, end: number, fileStart: number): FetchPart {
    const part: FetchPart = {
      start: fileStart,
      end: fileStart + (end - start),
      arrived: (bytes) => {
        piece.landed = bytes;
        this.#publish();
      },
    };
    const piece: Piece = { start, end, part, landed: 0, fetch: undefined };
    this.#unattached.set(part, piece);
    return part;
  }

  /** The request that brings `part` has begun. */
  attach(part: FetchPart, fetch: RangeFetch): void {
    const piece = this.#unattached.get(part)!;
    this.#unattached.delete(part);
    piece.fetch = fetch;
    this.#pieces.push(piece);
    if (this.#flow === undefined) this.#openFlow();
    else this.#feed(this.#flow, piece);
    this.#publish(); // of a transport that needs no waiting bytes may be there before the request has begun
  }

  /** The request was not begun after all. */
  detach(part: FetchPart): void {
    this.#unattached.delete(part);
  }

  #feed(flow: Flow, piece: Piece): void {
    const { start, end, part, fetch } = piece;
    flow.add({ address: fetch!.address + (part.start - fetch!.start), start, end });
  }

  /** Moves the decoder's mark to the end of what has arrived without a hole. */
  #publish(): void {
    let end = this.#published;
    for (const piece of this.#pieces) {
      if (piece.end <= end) continue;
      if (piece.start > end) break;
      end = Math.max(end, piece.start + piece.landed);
    }
    if (end === this.#published) return;
    const first = this.#published === 0;
    this.#published = end;
    this.#flow?.arrived(end);
    if (first) this.#events.changed();
  }

  #openFlow(): void {
    if (this.ended) return;
    this.#flow = this.#streams.open(this.spec, {
      segment: (segment) => this.#take(segment),
      idle: () => this.#events.changed(),
      consumed: (bytes) => this.#consume(bytes),
      memoryShort: (bytes, usedBytes) => {
        this.memoryShort = bytes;
        this.#usedWhenShort = usedBytes;
        this.#events.changed();
      },
      ended: () => this.#end(),
      failed: (error) => {
        this.#end();
        if (this.#closing === undefined) this.#events.failed(error);
      },
    });
    if (this.#flow === undefined) return; // every mark is taken; tried again when something changes
    for (const piece of this.#pieces) this.#feed(this.#flow, piece);
    this.#flow.arrived(this.#published);
  }

  /** Starts the decoder when there is input, room for output, and it is not running. */
  runIfUseful(): void {
    if (this.ended || this.#closing !== undefined || this.#segments.length >= SEGMENTS_AHEAD) return;
    if (this.#flow === undefined && this.#pieces.length > 0) this.#openFlow();
    const flow = this.#flow;
    if (flow === undefined || flow.running || this.#published === 0) return;
    if (this.memoryShort > 0 && this.#pool.usedBytes >= this.#usedWhenShort) return;
    this.memoryShort = 0;
    flow.run();
  }

  /** Lets a flow that was short of memory try again whatever the pool looks like. */
  retry(): void {
    this.#usedWhenShort = Number.POSITIVE_INFINITY;
  }

  #take(segment: Segment): void {
    if (segment.dictionary !== undefined && this.#dictionary === undefined) {
      this.#dictionary = new SharedDictionary(this.#pool, segment.dictionary);
    }
    const dictionary = segment.dictionary === undefined ? undefined : this.#dictionary;
    const shared = new SharedSegment(this.#pool, segment, dictionary, () => this.#events.changed());
    this.rowsDecoded += segment.rows;
    if (this.#closing !== undefined) shared.release();
    else this.#segments.push(shared);
  }

  #consume(bytes: number): void {
    this.#consumed = Math.max(this.#consumed, bytes);
    while (this.#pieces.length > 0 && this.#pieces[0]!.end <= this.#consumed) {
      const piece = this.#pieces.shift()!;
      piece.fetch!.release(piece.part, piece.end - piece.start, 'speculation');
    }
    this.#events.changed();
  }

  #end(): void {
    if (this.ended) return;
    this.ended = true;
    const reason = this.#closing ?? 'speculation';
    for (const piece of this.#pieces.splice(0)) {
      // what a decoder that reached its end did not look at is trailing room of the chunk: it was asked for
      const used = this.#closing === undefined ? piece.end - piece.start : Math.max(0, this.#consumed - piece.start);
      piece.fetch!.release(piece.part, used, reason);
    }
    this.#dictionary?.release();
    this.#events.changed();
  }

  /** `rows` rows from the front: the shared segment and where they start. The caller holds a reference. */
  take(rows: number): { shared: SharedSegment; start: number } {
    const shared = this.#segments[0]!;
    const start = this.#taken;
    this.#taken += rows;
    if (this.#taken === shared.segment.rows) {
      this.#segments.shift(); // the queue's reference becomes the caller's
      this.#taken = 0;
    } else shared.retain();
    return { shared, start };
  }

  /** Gives everything up; it is over when `ended` turns true. */
  close(reason: WasteReason): void {
    if (this.#closing !== undefined) return;
    this.#closing = reason;
    for (const shared of this.#segments.splice(0)) shared.release();
    if (this.ended) return;
    if (this.#flow === undefined) this.#end();
    else this.#flow.close();
  }
}
