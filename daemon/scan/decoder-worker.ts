/**
 * A decoder stream: a thread that steps the column chunks assigned to it. It owns the clock that decode does not
 * have. It never returns to its event loop: messages are taken synchronously, and when no flow can go on it sleeps on
 * its bell in shared memory, so that an arriving line wakes it without a message.
 */
import { type MessagePort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import {
  ChunkDecoder,
  type DecodeEnvironment,
  DecodeError,
  LINE_BYTES,
  loadKernels,
  Pool,
} from '../../decode/index.ts';
import type { FromStream, StreamStart, ToStream } from './messages.ts';

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
}

function serve(port: MessagePort, start: StreamStart): void {
  const pool = Pool.attach(start.memory);
  const environment: DecodeEnvironment = {
    pool,
    kernels: loadKernels(start.memory),
    verifyChecksums: start.verifyChecksums,
  };
  const flows = new Map<number, Flow>();
  const post = (message: FromStream): void => port.postMessage(message);
  for (;;) {
    const bell = Atomics.load(pool.i32, start.bell);
    for (;;) {
      const received = receiveMessageOnPort(port) as { message: ToStream } | undefined;
      if (received === undefined) break;
      if (received.message.kind === 'exit') {
        port.close();
        return;
      }
      take(received.message, environment, flows, post);
    }
    let moved = false;
    for (const flow of flows.values()) if (flow.running && stepFlow(flow, pool, flows, post)) moved = true;
    if (!moved) Atomics.wait(pool.i32, start.bell, bell);
  }
}

function take(
  message: ToStream,
  environment: DecodeEnvironment,
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
  } else if (message.kind === 'run') {
    flow.running = true;
    flow.starvedAt = -1;
  } else {
    flow.decoder.close();
    flows.delete(flow.id);
    post({ kind: 'closed', flow: flow.id });
  }
}

/** Steps a flow once; false when it had nothing to go on. */
function stepFlow(flow: Flow, pool: Pool, flows: Map<number, Flow>, post: (message: FromStream) => void): boolean {
  const { decoder } = flow;
  const lines = Atomics.load(pool.i32, flow.mark) >>> 0;
  if (lines === flow.starvedAt) return false;
  decoder.input.arrived = Math.min(lines * LINE_BYTES, flow.byteLength);
  const started = performance.now();
  try {
    const result = decoder.step();
    flow.busyMs += performance.now() - started;
    if (result === 'input') {
      flow.starvedAt = lines;
      reportConsumed(flow, post);
      return true;
    }
    flow.running = false;
    const busyMs = flow.busyMs;
    flow.busyMs = 0;
    if (result === 'memory') {
      post({ kind: 'memory', flow: flow.id, bytes: pool.refusedBytes, usedBytes: pool.usedBytes, busyMs });
      return true;
    }
    const segment = result === 'segment' ? decoder.takeSegment() : undefined;
    const end = result === 'end' || decoder.isDone;
    if (end) {
      decoder.close();
      flows.delete(flow.id);
    }
    const { consumed } = decoder.input;
    post({ kind: 'segment', flow: flow.id, segment, consumed, end, busyMs });
  } catch (error) {
    flow.running = false;
    decoder.close();
    flows.delete(flow.id);
    post({ kind: 'error', flow: flow.id, error: posted(error) });
  }
  return true;
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
