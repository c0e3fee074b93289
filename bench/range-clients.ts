/**
 * Two equally cheap clients for range reads, one per protocol: a raw socket read into one buffer, headers parsed, payload
 * skipped and counted. They measure servers, not clients; `fetchOnce` returns a payload to check what is served.
 */
import { connect, type Socket } from 'node:net';
import {
  decodeFrameHeader,
  decodeWelcome,
  encodeHello,
  encodeRead,
  FRAME_HEADER_BYTES,
  REQUEST_BYTES,
  viewOf,
  WC,
  WELCOME_BYTES,
} from '../storage-server/protocol/index.ts';

export interface RangeTarget {
  readonly port: number;
  /** Region address of the file's first byte, for queue pairs. */
  readonly base: number;
}

/** One connection. `request` asks for a range; `onDone` is called once for each answer, in order. */
export interface RangeClient {
  request(start: number, length: number): void;
  close(): void;
}

interface Events {
  readonly onDone: () => void;
  readonly onPayload?: (piece: Uint8Array) => void;
  readonly onError: (error: Error) => void;
}

export type ConnectRangeClient = (target: RangeTarget, events: Events) => Promise<RangeClient>;

const BUFFER_BYTES = 256 * 1024;

/** Headers are collected across pieces, payload is only counted. */
class Skipper {
  left = 0;
  held = new Uint8Array(0);
  readonly #parse: (held: Uint8Array) => number;
  readonly #events: Events;
  /** Whether the answer is complete when its payload ends. */
  last = true;

  /** `parse` returns how many bytes of `held` are a header, 0 for not yet, and sets `left` and `last`. */
  constructor(parse: (held: Uint8Array, skipper: Skipper) => number, events: Events) {
    this.#parse = (held) => parse(held, this);
    this.#events = events;
  }

  take(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.byteLength) {
      if (this.left > 0) {
        const piece = bytes.subarray(at, at + this.left);
        this.#events.onPayload?.(piece);
        at += piece.byteLength;
        this.left -= piece.byteLength;
        if (this.left === 0 && this.last) this.#events.onDone();
        continue;
      }
      const rest = bytes.subarray(at);
      const held = this.held.byteLength === 0 ? rest : Buffer.concat([this.held, rest]);
      const header = this.#parse(held);
      if (header === 0) {
        this.held = Uint8Array.from(held);
        return;
      }
      at += header - this.held.byteLength;
      this.held = new Uint8Array(0);
    }
  }
}

function openSocket(port: number, take: (bytes: Uint8Array) => void, events: Events): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const onread = {
      buffer: Buffer.alloc(BUFFER_BYTES),
      callback: (length: number, buffer: Uint8Array) => {
        take(buffer.subarray(0, length));
        return true;
      },
    };
    const socket = connect({ host: '127.0.0.1', port, noDelay: true, onread }, () => resolve(socket));
    socket.on('error', (error) => {
      reject(error);
      events.onError(error);
    });
  });
}

/** Connects over queue pairs. */
export const connectQueuePairClient: ConnectRangeClient = async (target, events) => {
  let rkey: number | undefined;
  let wrId = 1;
  let greeted = (): void => {};
  const skipper = new Skipper((held, self) => {
    if (rkey === undefined) {
      if (held.byteLength < WELCOME_BYTES) return 0;
      const welcome = decodeWelcome(held.subarray(0, WELCOME_BYTES));
      if ('refusal' in welcome) throw new Error(`refused: ${welcome.refusal}`);
      rkey = welcome.rkey;
      greeted();
      return WELCOME_BYTES;
    }
    if (held.byteLength < FRAME_HEADER_BYTES) return 0;
    const frame = decodeFrameHeader(viewOf(held), 0);
    if (frame.status !== WC.SUCCESS) throw new Error(`READ failed with status ${frame.status}`);
    self.left = frame.payloadBytes;
    self.last = frame.last;
    return FRAME_HEADER_BYTES;
  }, events);
  const socket = await openSocket(target.port, (bytes) => skipper.take(bytes), events);
  const ready = new Promise<void>((resolve) => {
    greeted = resolve;
  });
  socket.write(encodeHello({ checksum: false, queueDepth: 128, readBytesMax: 8 << 20, outstandingMax: 16 }));
  await ready;
  return {
    request(start, length) {
      const frame = new Uint8Array(REQUEST_BYTES);
      encodeRead(viewOf(frame), 0, { wrId: wrId++, rkey: rkey!, address: target.base + start, length });
      socket.write(frame);
    },
    close: () => socket.destroy(),
  };
};

/** Connects over HTTP/1.1, requests pipelined on one connection. */
export const connectHttpClient: ConnectRangeClient = async (target, events) => {
  const skipper = new Skipper((held, self) => {
    const end = Buffer.from(held.buffer, held.byteOffset, held.byteLength).indexOf('\r\n\r\n');
    if (end < 0) return 0;
    const header = Buffer.from(held.buffer, held.byteOffset, end).toString('latin1');
    if (!header.startsWith('HTTP/1.1 206')) throw new Error(header);
    self.left = Number(/content-length: (\d+)/i.exec(header)?.[1]);
    return end + 4;
  }, events);
  const socket = await openSocket(target.port, (bytes) => skipper.take(bytes), events);
  return {
    request(start, length) {
      socket.write(`GET /data.bin HTTP/1.1\r\nHost: b\r\nRange: bytes=${start}-${start + length - 1}\r\n\r\n`);
    },
    close: () => socket.destroy(),
  };
};

/** One range, as it was served. */
export async function fetchOnce(
  connectClient: ConnectRangeClient,
  target: RangeTarget,
  start: number,
  length: number,
): Promise<Buffer> {
  const pieces: Buffer[] = [];
  return await new Promise((resolve, reject) => {
    const done = {
      onDone: () => {},
      onPayload: (piece: Uint8Array) => pieces.push(Buffer.from(piece)),
      onError: reject,
    };
    const client = connectClient(target, {
      ...done,
      onDone: () => {
        client.then((open) => open.close());
        resolve(Buffer.concat(pieces));
      },
    });
    client.then((open) => open.request(start, length), reject);
  });
}
