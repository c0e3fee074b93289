/**
 * Cuts the received stream into frames without copying large payloads: it names a buffer of exactly a header, then the
 * destination itself. While only little is expected it names a staging buffer instead, takes several frames in one go
 * and copies. Knows how frames are framed, not what they answer.
 */
import { crc32 } from 'node:zlib';
import { FRAME_HEADER_BYTES, type FrameHeader, ProtocolError, viewOf } from '../../storage-server/protocol/index.ts';
import { STAGED_READ_BYTES_MAX, STAGING_BYTES } from './limits.ts';

/** What the receiver tells, and asks of, the queue pair it works for. E is a request that is out. */
export interface FrameSink<E = unknown> {
  readonly checksum: boolean;
  /** A header is here; answer by calling payload, message or skip, or nothing if no payload follows. */
  onFrame(header: DataView): void;
  /** Where the payload of `entry` goes, undefined to throw it away. */
  destination(entry: E): Uint8Array | undefined;
  onBytes(entry: E, bytes: number): void;
  onPayloadEnd(entry: E, header: FrameHeader, crcMatches: boolean): void;
}

/** Sink of payloads that nobody wants any more; its content is never read. */
const DISCARDED = new Uint8Array(STAGING_BYTES);

interface Payload<E> {
  readonly entry: E;
  readonly header: FrameHeader;
  taken: number;
  crc: number;
}

export class FrameReceiver<E> {
  readonly #sink: FrameSink<E>;
  readonly #staging = new Uint8Array(STAGING_BYTES);
  readonly #header = new Uint8Array(FRAME_HEADER_BYTES);
  readonly #headerView = viewOf(this.#header);
  #headerBytes = 0;
  #payload: Payload<E> | undefined;
  #message: { bytes: Uint8Array; taken: number; done: (bytes: Uint8Array) => void } | undefined;
  #skipping = 0;
  #armed: Uint8Array = this.#header;

  constructor(sink: FrameSink<E>) {
    this.#sink = sink;
  }

  /** Where the next bytes go, when about `expected` payload bytes are to come. */
  target(expected: number): Uint8Array {
    this.#armed = this.#next(expected);
    return this.#armed;
  }

  /** Whether bytes that are received now would land in `destination`. */
  isArmedFor(destination: Uint8Array): boolean {
    const { buffer, byteOffset, byteLength } = destination;
    const start = this.#armed.byteOffset;
    return (
      this.#armed.buffer === buffer && start < byteOffset + byteLength && byteOffset < start + this.#armed.byteLength
    );
  }

  /** Takes `bytes` that have landed at the last target. Throws ProtocolError. */
  landed(bytes: number): void {
    const armed = this.#armed;
    this.#armed = this.#header;
    if (armed.buffer !== this.#staging.buffer && armed.buffer !== this.#header.buffer) {
      this.#took(armed.subarray(0, bytes));
      return;
    }
    if (armed.buffer === this.#header.buffer) {
      this.#headerBytes += bytes;
      this.#headerDone();
      return;
    }
    for (let at = 0; at < bytes; ) at += this.#consume(armed.subarray(at, bytes));
  }

  payload(entry: E, header: FrameHeader): void {
    this.#payload = { entry, header, taken: 0, crc: 0 };
  }

  /** Collects a payload of `length` bytes, which is small. */
  message(length: number, done: (bytes: Uint8Array) => void): void {
    const bytes = new Uint8Array(length);
    if (length === 0) done(bytes);
    else this.#message = { bytes, taken: 0, done };
  }

  skip(length: number): void {
    this.#skipping = length;
  }

  #next(expected: number): Uint8Array {
    const payload = this.#payload;
    if (payload !== undefined) {
      const left = payload.header.payloadBytes - payload.taken;
      const destination = this.#sink.destination(payload.entry);
      if (destination === undefined) return DISCARDED.subarray(0, Math.min(left, DISCARDED.byteLength));
      const start = payload.header.offset + payload.taken;
      return destination.subarray(start, start + left);
    }
    if (this.#message !== undefined || this.#skipping > 0) return this.#staging;
    if (expected > STAGED_READ_BYTES_MAX) return this.#header.subarray(this.#headerBytes);
    return this.#staging;
  }

  /** Takes what it can use of bytes in the staging buffer; returns how many. */
  #consume(bytes: Uint8Array): number {
    const payload = this.#payload;
    if (payload !== undefined) {
      const piece = bytes.subarray(0, payload.header.payloadBytes - payload.taken);
      const start = payload.header.offset + payload.taken;
      this.#sink.destination(payload.entry)?.set(piece, start);
      this.#took(piece);
      return piece.byteLength;
    }
    if (this.#message !== undefined) {
      const { bytes: message, taken, done } = this.#message;
      const piece = bytes.subarray(0, message.byteLength - taken);
      message.set(piece, taken);
      this.#message.taken += piece.byteLength;
      if (this.#message.taken === message.byteLength) {
        this.#message = undefined;
        done(message);
      }
      return piece.byteLength;
    }
    if (this.#skipping > 0) {
      const skipped = Math.min(this.#skipping, bytes.byteLength);
      this.#skipping -= skipped;
      return skipped;
    }
    const piece = bytes.subarray(0, FRAME_HEADER_BYTES - this.#headerBytes);
    this.#header.set(piece, this.#headerBytes);
    this.#headerBytes += piece.byteLength;
    this.#headerDone();
    return piece.byteLength;
  }

  #headerDone(): void {
    if (this.#headerBytes < FRAME_HEADER_BYTES) return;
    this.#headerBytes = 0;
    this.#sink.onFrame(this.#headerView);
  }

  #took(piece: Uint8Array): void {
    const payload = this.#payload;
    if (payload === undefined) throw new ProtocolError('FRAME', 'bytes landed where none were expected');
    payload.taken += piece.byteLength;
    if (this.#sink.checksum) payload.crc = crc32(piece, payload.crc);
    const complete = payload.taken === payload.header.payloadBytes;
    if (complete) this.#payload = undefined;
    this.#sink.onBytes(payload.entry, piece.byteLength);
    if (complete) {
      const crcMatches = !this.#sink.checksum || payload.crc === payload.header.crc;
      this.#sink.onPayloadEnd(payload.entry, payload.header, crcMatches);
    }
  }
}
