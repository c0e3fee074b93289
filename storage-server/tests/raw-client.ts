/** A client for tests that says exactly what it is told to, and collects what comes back as frames. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type ConnectionOptions, connect as tlsConnect } from 'node:tls';
import {
  decodeFrameHeader,
  decodeWelcome,
  encodeHello,
  encodeRead,
  FRAME_HEADER_BYTES,
  type FrameHeader,
  REQUEST_BYTES,
  viewOf,
  WELCOME_BYTES,
  type Welcome,
} from '../protocol/index.ts';

export interface Frame extends FrameHeader {
  readonly payload: Buffer;
}

/** Answer to one READ: all its payloads, or the reason of its error. */
export interface Answer {
  readonly wrId: number;
  readonly status: number;
  readonly bytes: Buffer;
}

export const HELLO = { checksum: false, queueDepth: 128, readBytesMax: 8 << 20, outstandingMax: 16 };

export class RawClient {
  readonly socket: Socket;
  ended = false;
  #received = Buffer.alloc(0);
  #wake: (() => void) | undefined;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (piece: Buffer) => {
      this.#received = Buffer.concat([this.#received, piece]);
      this.#wake?.();
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      this.ended = true;
      this.#wake?.();
    });
    socket.on('end', () => {
      this.ended = true;
      this.#wake?.();
    });
  }

  /** With `tls` as TLS has it. */
  static async connect(port: number, tls?: ConnectionOptions): Promise<RawClient> {
    const to = { host: '127.0.0.1', port, noDelay: true };
    const socket = tls === undefined ? connect(to) : tlsConnect({ ...to, ...tls });
    const client = new RawClient(socket);
    await once(socket, tls === undefined ? 'connect' : 'secureConnect');
    return client;
  }

  /** Connects and shakes hands. */
  static async greeted(
    port: number,
    hello: Partial<typeof HELLO> = {},
    { token, tls }: { token?: string; tls?: ConnectionOptions } = {},
  ): Promise<RawClient & { welcome: Welcome }> {
    const client = await RawClient.connect(port, tls);
    client.socket.write(encodeHello({ ...HELLO, ...hello }, Buffer.from(token === undefined ? '' : `Bearer ${token}`)));
    const welcome = decodeWelcome((await client.take(WELCOME_BYTES))!);
    if ('refusal' in welcome) {
      const reason = await client.take(welcome.reasonBytes);
      client.socket.destroy();
      throw new Error(`refused ${welcome.refusal}: ${reason}`);
    }
    return Object.assign(client, { welcome });
  }

  /** The next `length` bytes, or undefined if the connection ends before. */
  async take(length: number): Promise<Buffer | undefined> {
    while (this.#received.byteLength < length) {
      if (this.ended) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const bytes = this.#received.subarray(0, length);
    this.#received = this.#received.subarray(length);
    return bytes;
  }

  async frame(): Promise<Frame | undefined> {
    const bytes = await this.take(FRAME_HEADER_BYTES);
    if (bytes === undefined) return undefined;
    const header = decodeFrameHeader(viewOf(bytes), 0);
    const payload = await this.take(header.payloadBytes);
    return payload === undefined ? undefined : { ...header, payload };
  }

  /** The next completion; undefined if the connection ends before. */
  async answer(): Promise<Answer | undefined> {
    const pieces: Buffer[] = [];
    for (;;) {
      const frame = await this.frame();
      if (frame === undefined || frame.kind !== 1) return undefined;
      pieces.push(frame.payload);
      if (frame.last) return { wrId: frame.wrId, status: frame.status, bytes: Buffer.concat(pieces) };
    }
  }

  /** Waits until the server has ended the connection. */
  async end(): Promise<void> {
    while (!this.ended) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.socket.destroy();
  }
}

export function readFrame(read: { wrId: number; rkey: number; address: number | bigint; length: number }): Uint8Array {
  const bytes = new Uint8Array(REQUEST_BYTES);
  encodeRead(viewOf(bytes), 0, { ...read, address: 0 });
  viewOf(bytes).setBigUint64(16, BigInt(read.address), true);
  return bytes;
}
