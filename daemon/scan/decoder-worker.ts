/**
 * A decoder stream: a thread that steps the column chunks assigned to it. It owns the clock that decode does not
 * have: what it does at which time it writes to the profilers that the control block has for it. It never returns to
 * its event loop: messages are taken synchronously, and when no flow can go on it sleeps on its bell in shared memory,
 * so that an arriving line wakes it without a message.
 */
import { type MessagePort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import {
  ChunkDecoder,
  type DecodeEnvironment,
  DecodeError,
  dictionaryBytes,
  LINE_BYTES,
  loadKernels,
  PageTally,
  Pool,
  type Segment,
  segmentBytes,
} from '../../decode/index.ts';
import { readControlBlock } from './control-block.ts';
import { DecoderProfiler, registerWords } from './decoder-profiler.ts';
import { DecoderQueue } from './decoder-queue.ts';
import { FetcherRegisters } from './fetcher-registers.ts';
import type { FromStream, StreamStart, ToStream } from './messages.ts';
import { PageCounters } from './page-counters.ts';

interface Flow {
  readonly id: number;
  readonly decoder: ChunkDecoder;
  readonly byteLength: number;
  readonly mark: number;
  /** Ends of pieces not yet reported as used up. */
  readonly pieceEnds: number[];
  running: boolean;
  /** Lines seen at the last step that ended for want of input. */
  starvedAt: number;
  busyMs: number;
  /** Lines of input that the profiler knows of. */
  beats: number;
  /** A segment that names the dictionary has been counted. */
  dictionaryOut: boolean;
}

/** The decoder as the control block describes it. */
interface Registers {
  readonly queue: DecoderQueue;
  readonly profiler: DecoderProfiler;
  readonly pages: PageCounters | undefined;
  readonly tally: PageTally | undefined;
}

function openRegisters(pool: Pool, { control, ordinal }: StreamStart): Registers {
  const block = readControlBlock(pool, control);
  const decoder = block.decoders[ordinal];
  if (decoder === undefined) throw new RangeError(`the control block has no decoder ${ordinal}`);
  const words = registerWords(pool);
  return {
    queue: new DecoderQueue(pool, decoder),
    profiler: new DecoderProfiler(words, decoder, new FetcherRegisters(pool, block.fetcher)),
    pages: decoder.pages === undefined ? undefined : new PageCounters(words, decoder.pages),
    tally: decoder.pages === undefined ? undefined : new PageTally(),
  };
}

function serve(port: MessagePort, start: StreamStart): void {
  const pool = Pool.attach(start.memory);
  const registers = openRegisters(pool, start);
  const environment: DecodeEnvironment = {
    pool,
    kernels: loadKernels(start.memory),
    verifyChecksums: start.verifyChecksums,
    ...(registers.tally === undefined ? {} : { tally: registers.tally }),
  };
  const flows = new Map<number, Flow>();
  const post = (message: FromStream): void => port.postMessage(message);
  const { queue, profiler } = registers;
  profiler.work();
  for (;;) {
    const { bell, tail } = queue; // before the messages: a flow before the tail was opened by one of them
    for (;;) {
      const received = receiveMessageOnPort(port) as { message: ToStream } | undefined;
      if (received === undefined) break;
      if (received.message.kind === 'exit') {
        port.close();
        return;
      }
      take(received.message, environment, queue, flows, post);
    }
    startRuns(queue, tail, flows, post);
    let moved = false;
    let forInput = 0;
    for (const flow of flows.values()) {
      if (!flow.running) continue;
      if (stepFlow(flow, pool, registers, flows, post)) moved = true;
      if (flow.running) forInput++;
    }
    if (moved) continue;
    profiler.rest(forInput, flows.size - forInput);
    queue.sleep(bell);
    profiler.work();
  }
}

/** Takes the FIFO's flows up to `tail`. */
function startRuns(
  queue: DecoderQueue,
  tail: number,
  flows: Map<number, Flow>,
  post: (message: FromStream) => void,
): void {
  for (let id = queue.pop(tail); id !== undefined; id = queue.pop(tail)) {
    const flow = flows.get(id);
    if (flow === undefined) {
      // it failed at once or was closed before its turn: the slot is free, which the scheduler has to hear
      queue.free();
      post({ kind: 'closed', flow: id });
      continue;
    }
    flow.running = true;
    flow.starvedAt = -1;
  }
}

function take(
  message: ToStream,
  environment: DecodeEnvironment,
  queue: DecoderQueue,
  flows: Map<number, Flow>,
  post: (message: FromStream) => void,
): void {
  if (message.kind === 'open') {
    try {
      flows.set(message.flow, {
        id: message.flow,
        decoder: new ChunkDecoder(environment, message.spec),
        byteLength: message.spec.byteLength,
        mark: message.mark,
        pieceEnds: [],
        running: false,
        starvedAt: -1,
        busyMs: 0,
        beats: 0,
        dictionaryOut: false,
      });
    } catch (error) {
      post({ kind: 'error', flow: message.flow, error: posted(error) });
    }
    return;
  }
  if (message.kind === 'exit') return;
  const flow = flows.get(message.flow);
  if (flow === undefined) {
    // A flow that failed at once, or ended while the message was on its way.
    if (message.kind === 'close') post({ kind: 'closed', flow: message.flow });
    return;
  }
  if (message.kind === 'piece') {
    flow.decoder.input.add(message.piece);
    flow.pieceEnds.push(message.piece.end);
    flow.starvedAt = -1;
  } else {
    if (flow.running) queue.free();
    flow.decoder.close();
    flows.delete(flow.id);
    post({ kind: 'closed', flow: flow.id });
  }
}

/** Steps a flow once; false when it had nothing to go on. */
function stepFlow(
  flow: Flow,
  pool: Pool,
  registers: Registers,
  flows: Map<number, Flow>,
  post: (message: FromStream) => void,
): boolean {
  const { decoder } = flow;
  const { queue } = registers;
  const lines = Atomics.load(pool.i32, flow.mark) >>> 0;
  if (lines === flow.starvedAt) return false;
  decoder.input.arrived = Math.min(lines * LINE_BYTES, flow.byteLength);
  const started = performance.now();
  try {
    const result = decoder.step();
    flow.busyMs += performance.now() - started;
    const segment = result === 'segment' ? decoder.takeSegment() : undefined;
    count(flow, segment, registers);
    if (result === 'input') {
      flow.starvedAt = lines;
      reportConsumed(flow, post);
      return true;
    }
    stop(flow, queue);
    const busyMs = flow.busyMs;
    flow.busyMs = 0;
    if (result === 'memory') {
      post({ kind: 'memory', flow: flow.id, bytes: pool.refusedBytes, usedBytes: pool.usedBytes, busyMs });
      return true;
    }
    const end = result === 'end' || decoder.isDone;
    if (end) {
      decoder.close();
      flows.delete(flow.id);
    }
    const { consumed } = decoder.input;
    post({ kind: 'segment', flow: flow.id, segment, consumed, end, busyMs });
  } catch (error) {
    stop(flow, queue);
    decoder.close();
    flows.delete(flow.id);
    post({ kind: 'error', flow: flow.id, error: posted(error) });
  }
  return true;
}

function stop(flow: Flow, queue: DecoderQueue): void {
  if (flow.running) queue.free();
  flow.running = false;
}

/** Enters what a step has moved: lines in, lines out, pages. */
function count(flow: Flow, segment: Segment | undefined, { profiler, pages, tally }: Registers): void {
  if (tally !== undefined) pages?.add(tally);
  if (!profiler.isThere) return;
  const { beats } = flow.decoder.input;
  const taken = beats - flow.beats;
  flow.beats = beats;
  if (segment === undefined) {
    profiler.handOver(taken, 0);
    return;
  }
  let bytes = segmentBytes(segment);
  if (segment.dictionary !== undefined && !flow.dictionaryOut) {
    bytes += dictionaryBytes(segment.dictionary);
    flow.dictionaryOut = true;
  }
  profiler.handOver(taken, Math.ceil(bytes / LINE_BYTES));
}

function reportConsumed(flow: Flow, post: (message: FromStream) => void): void {
  const { consumed } = flow.decoder.input;
  if (flow.pieceEnds.length === 0 || flow.pieceEnds[0]! > consumed) return;
  while (flow.pieceEnds.length > 0 && flow.pieceEnds[0]! <= consumed) flow.pieceEnds.shift();
  post({ kind: 'consumed', flow: flow.id, consumed });
}

function posted(error: unknown): { code: DecodeError['code']; reason: string; place: DecodeError['place'] } {
  if (error instanceof DecodeError) return { code: error.code, reason: error.reason, place: error.place };
  throw error; // a broken invariant: let the thread end with it
}

const { port, start } = workerData as { port: MessagePort; start: StreamStart };
serve(port, start);
