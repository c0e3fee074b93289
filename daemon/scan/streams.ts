/**
 * Decoder streams: a fixed number of worker threads, and the scheduler that puts unbounded flows (column chunks) on
 * them. A flow goes to the least loaded stream when it first runs and stays there, since its state does. Each stream
 * has a FIFO of 64 slots; what finds no slot waits here, in order. How many streams there are, where their FIFOs and
 * bells lie and whether they have profilers is read from the control block. Nothing here fetches or waits for bytes.
 */
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import {
  type ChunkSpec,
  DecodeError,
  type InputPiece,
  LINE_BYTES,
  type Pool,
  type Segment,
  type WindowPlaces,
} from '../../decode/index.ts';
import { DECODER_OLD_MEBIBYTES, DECODER_YOUNG_MEBIBYTES } from '../limits.ts';
import { type ControlBlock, type DecoderBounds, readControlBlock } from './control-block.ts';
import { DecoderProfiler, registerWords } from './decoder-profiler.ts';
import { DecoderQueue } from './decoder-queue.ts';
import { FetcherRegisters } from './fetcher-registers.ts';
import type { FromStream, StreamStart, ToStream } from './messages.ts';

/** What a flow's owner hears. After `ended` or `failed` nothing more comes. */
export interface FlowEvents {
  segment(segment: Segment): void;
  /** The current run is over (a segment is out, or memory was short); `run` may be called again. */
  idle(): void;
  consumed(bytes: number): void;
  /** A slab of `bytes` did not fit beside the `usedBytes` of the pool then; the flow is idle. */
  memoryShort(bytes: number, usedBytes: number): void;
  /** Every value is out, or the flow was closed as asked. */
  ended(complete: boolean): void;
  failed(error: Error): void;
}

interface Stream {
  readonly worker: Worker;
  readonly port: MessagePort;
  readonly queue: DecoderQueue;
  readonly profiler: DecoderProfiler;
  /** Flows that live on it. */
  flows: number;
  readonly waiting: Flow[];
  busyMs: number;
}

export class Flow {
  readonly id: number;
  spec: ChunkSpec;
  readonly events: FlowEvents;
  busyMs = 0;
  stream: Stream | undefined;
  running = false;
  over = false;
  readonly mark: number;
  /** None of its bytes have arrived. */
  isAwaited = true;
  readonly #streams: DecoderStreams;
  readonly #early: InputPiece[] = [];

  constructor(streams: DecoderStreams, id: number, spec: ChunkSpec, mark: number, events: FlowEvents) {
    this.#streams = streams;
    this.id = id;
    this.spec = spec;
    this.mark = mark;
    this.events = events;
  }

  /** Before the first run: where the values of its windows go. */
  place(places: WindowPlaces): void {
    this.spec = { ...this.spec, place: places };
  }

  /** The next piece of the chunk, whose bytes are on their way. */
  add(piece: InputPiece): void {
    if (this.stream === undefined) this.#early.push(piece);
    else this.#streams.post(this.stream, { kind: 'piece', flow: this.id, piece });
  }

  /** Chunk bytes [0, bytes) have arrived. */
  arrived(bytes: number): void {
    const lines = bytes === this.spec.byteLength ? Math.ceil(bytes / LINE_BYTES) : Math.floor(bytes / LINE_BYTES);
    this.#streams.setMark(this, lines);
    if (this.isAwaited && bytes > 0) this.#streams.begun(this);
  }

  /** Asks for the next segment. */
  run(): void {
    if (this.over || this.running) return;
    this.running = true;
    this.#streams.enqueue(this);
  }

  /** Ends the flow early; `ended(false)` follows when its memory has been given back. */
  close(): void {
    this.#streams.closeFlow(this);
  }

  /** Pieces added before the flow had a stream. */
  takeEarly(): InputPiece[] {
    return this.#early.splice(0);
  }
}

export class DecoderStreams {
  readonly #pool: Pool;
  readonly #streams: Stream[] = [];
  readonly #flows = new Map<number, Flow>();
  readonly #freeMarks: number[] = [];
  readonly #fetcher: FetcherRegisters;
  #nextFlow = 1;
  #failure: Error | undefined;
  readonly #failed = Promise.withResolvers<Error>();
  #closing = false;

  /** Starts the decoder threads of the control block at `control`. Throws RangeError for a block that is broken. */
  constructor(pool: Pool, control: number, verifyChecksums: boolean) {
    this.#pool = pool;
    const block = readControlBlock(pool, control);
    this.#fetcher = new FetcherRegisters(pool, block.fetcher);
    this.#fetcher.reset();
    const { firstMark, marks } = this.#fetcher;
    for (let k = marks - 1; k >= 0; k--) this.#freeMarks.push(firstMark + k);
    const words = registerWords(pool);
    const profilers = block.decoders.map((decoder) => new DecoderProfiler(words, decoder, this.#fetcher));
    for (const profiler of profilers) profiler.reset();
    for (const [k, decoder] of block.decoders.entries()) {
      this.#streams.push(this.#start(block, decoder, profilers[k]!, verifyChecksums));
    }
  }

  /** Resolves when a decoder thread has ended by itself: nothing can be scanned any more. */
  get failed(): Promise<Error> {
    return this.#failed.promise;
  }

  get count(): number {
    return this.#streams.length;
  }

  /** Milliseconds that each stream has spent decoding. */
  busyMs(): number[] {
    return this.#streams.map((stream) => stream.busyMs);
  }

  /** What each stream has at the moment: flows that live on it, slots that are taken, flows that wait for a slot. */
  load(): { flows: number; running: number; waiting: number }[] {
    return this.#streams.map(({ flows, queue, waiting }) => ({
      flows,
      running: queue.occupancy,
      waiting: waiting.length,
    }));
  }

  #start(block: ControlBlock, decoder: DecoderBounds, profiler: DecoderProfiler, verifyChecksums: boolean): Stream {
    const { port1, port2 } = new MessageChannel();
    const { ordinal } = decoder;
    const start: StreamStart = { memory: this.#pool.memory, control: block.start, ordinal, verifyChecksums };
    const queue = new DecoderQueue(this.#pool, decoder);
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const worker = new Worker(new URL(`./decoder-worker.${extension}`, import.meta.url), {
      workerData: { port: port2, start },
      transferList: [port2],
      resourceLimits: {
        maxYoungGenerationSizeMb: DECODER_YOUNG_MEBIBYTES,
        maxOldGenerationSizeMb: DECODER_OLD_MEBIBYTES,
      },
    });
    const stream: Stream = { worker, port: port1, queue, profiler, flows: 0, waiting: [], busyMs: 0 };
    port1.on('message', (message: FromStream) => this.#receive(stream, message));
    worker.on('error', (error) => this.#fail(error instanceof Error ? error : new Error(String(error))));
    worker.on('exit', (code) => {
      if (!this.#closing) this.#fail(new Error(`a decoder thread ended with code ${code}`));
    });
    worker.unref();
    port1.unref();
    return stream;
  }

  /** A new flow, not running yet. Undefined when all marks are taken. Throws what ended a decoder thread. */
  open(spec: ChunkSpec, events: FlowEvents): Flow | undefined {
    if (this.#failure !== undefined) throw this.#failure;
    const mark = this.#freeMarks.pop();
    if (mark === undefined) return undefined;
    Atomics.store(this.#pool.i32, mark, 0);
    const flow = new Flow(this, this.#nextId(), spec, mark, events);
    this.expect(1);
    if (this.#flows.size === 0) for (const stream of this.#streams) stream.port.ref();
    this.#flows.set(flow.id, flow);
    return flow;
  }

  /** A number that fits a slot and no open flow has. */
  #nextId(): number {
    do this.#nextFlow = (this.#nextFlow + 1) >>> 0;
    while (this.#flows.has(this.#nextFlow));
    return this.#nextFlow;
  }

  /** So many more (or fewer) chunks or row groups are on their way: what decoders without a flow are starved for. */
  expect(change: number): void {
    if (this.#fetcher.await(change)) this.#tellReason();
  }

  /** So many more (or fewer) scans wait for their consumer before they go on: decoders without a flow are stalled. */
  hold(change: number): void {
    if (this.#fetcher.hold(change)) this.#tellReason();
  }

  #tellReason(): void {
    const { reason } = this.#fetcher;
    for (const { profiler } of this.#streams) profiler.redirect(reason);
  }

  /** The flow's first bytes are there, or will never be. */
  begun(flow: Flow): void {
    if (!flow.isAwaited) return;
    flow.isAwaited = false;
    this.expect(-1);
  }

  enqueue(flow: Flow): void {
    if (flow.stream === undefined) {
      const stream = this.#leastLoaded();
      flow.stream = stream;
      stream.flows++;
      // the bell is rung once, when its number is in the FIFO too
      stream.port.postMessage({ kind: 'open', flow: flow.id, spec: flow.spec, mark: flow.mark } satisfies ToStream);
      for (const piece of flow.takeEarly()) {
        stream.port.postMessage({ kind: 'piece', flow: flow.id, piece } satisfies ToStream);
      }
    }
    flow.stream.waiting.push(flow);
    this.#fill(flow.stream);
  }

  #leastLoaded(): Stream {
    let best = this.#streams[0]!;
    const load = (stream: Stream): number => stream.queue.occupancy + stream.waiting.length;
    for (const stream of this.#streams) if (load(stream) < load(best)) best = stream;
    return best;
  }

  #fill(stream: Stream): void {
    let pushed = false;
    for (let flow = stream.waiting[0]; flow !== undefined; flow = stream.waiting[0]) {
      if (!flow.over && !stream.queue.push(flow.id)) break;
      pushed ||= !flow.over;
      stream.waiting.shift();
    }
    if (pushed) stream.queue.ring();
  }

  post(stream: Stream, message: ToStream): void {
    stream.port.postMessage(message);
    stream.queue.ring();
  }

  setMark(flow: Flow, lines: number): void {
    if (flow.over) return;
    Atomics.store(this.#pool.i32, flow.mark, lines | 0);
    if (flow.stream !== undefined && flow.running) flow.stream.queue.ring();
  }

  closeFlow(flow: Flow): void {
    if (flow.over) return;
    if (flow.stream === undefined) {
      this.#retire(flow);
      flow.events.ended(false);
      return;
    }
    const at = flow.stream.waiting.indexOf(flow);
    if (at >= 0) {
      flow.stream.waiting.splice(at, 1);
      flow.running = false;
    }
    this.post(flow.stream, { kind: 'close', flow: flow.id });
  }

  #receive(stream: Stream, message: FromStream): void {
    const flow = this.#flows.get(message.flow);
    if (flow === undefined) {
      this.#fill(stream);
      return;
    }
    switch (message.kind) {
      case 'segment':
        this.#stopRunning(stream, flow, message.busyMs);
        if (message.segment !== undefined) flow.events.segment(message.segment);
        flow.events.consumed(message.consumed);
        if (message.end) {
          this.#retire(flow);
          flow.events.ended(true);
        } else flow.events.idle();
        break;
      case 'consumed':
        flow.events.consumed(message.consumed);
        break;
      case 'memory':
        this.#stopRunning(stream, flow, message.busyMs);
        flow.events.memoryShort(message.bytes, message.usedBytes);
        break;
      case 'error': {
        this.#stopRunning(stream, flow, 0);
        this.#retire(flow);
        const { code, reason, place } = message.error;
        flow.events.failed(new DecodeError(code, reason, place));
        break;
      }
      case 'closed':
        this.#stopRunning(stream, flow, 0);
        this.#retire(flow);
        flow.events.ended(false);
    }
    this.#fill(stream);
  }

  #stopRunning(stream: Stream, flow: Flow, busyMs: number): void {
    flow.running = false;
    flow.busyMs += busyMs;
    stream.busyMs += busyMs;
  }

  #retire(flow: Flow): void {
    flow.over = true;
    if (flow.stream !== undefined) flow.stream.flows--;
    this.begun(flow);
    this.#flows.delete(flow.id);
    this.#freeMarks.push(flow.mark);
    // an idle engine keeps no process alive
    if (this.#flows.size === 0) for (const stream of this.#streams) stream.port.unref();
  }

  #fail(error: Error): void {
    this.#failure = error;
    this.#failed.resolve(error);
    for (const flow of [...this.#flows.values()]) {
      this.#retire(flow);
      flow.events.failed(error);
    }
  }

  /** Ends the threads; flows that are still open are lost. */
  async close(): Promise<void> {
    this.#closing = true;
    const exits = this.#streams.map(
      ({ worker }) => new Promise<void>((resolve) => worker.once('exit', () => resolve())),
    );
    for (const stream of this.#streams) {
      stream.worker.ref();
      this.post(stream, { kind: 'exit' });
    }
    await Promise.all(exits);
    for (const stream of this.#streams) stream.port.close();
  }
}
