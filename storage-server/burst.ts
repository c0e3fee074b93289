/**
 * One burst of one queue pair: the frames of one turn, which go over the wire in one write. Here what all bursts have in
 * common: READs at the front of the queue become frames, and headers are written when the bytes are there. Where the
 * bytes come from is the business of stored-burst.ts and memory-burst.ts. What can't be read turns its first frame into
 * the error that ends the pair.
 */
import type { Socket } from 'node:net';
import { crc32 } from 'node:zlib';
import { PIECE_BYTES_MIN } from './limits.ts';
import type { OpenFiles } from './open-files.ts';
import { encodePayloadHeader, FRAME_HEADER_BYTES, REASON_BYTES_MAX, WC } from './protocol/index.ts';
import type { Region } from './region.ts';
import type { Slab } from './slab-pool.ts';

export interface Failure {
  readonly status: number;
  readonly reason: string;
  /** What was asked for was there once. */
  readonly stale?: boolean;
}

/** A READ that is not complete yet, or the error that it will be answered with. */
export interface PendingRead {
  readonly wrLow: number;
  readonly wrHigh: number;
  readonly address: number;
  readonly length: number;
  /** When it was accepted, milliseconds of the process's clock. */
  readonly acceptedMs: number;
  /** Bytes that frames have been planned for. */
  planned: number;
  readonly failure?: Failure;
}

/** Bytes of one READ, or the reason of its error. */
export interface PlannedFrame {
  readonly read: PendingRead;
  /** Where in the READ the payload starts. */
  readonly offset: number;
  readonly payloadBytes: number;
  readonly last: boolean;
}

export abstract class Burst {
  /** All bytes are there and checked; the burst can be sent. */
  filled = false;
  /** The pair ends with this burst. */
  fatal = false;
  /** Bytes to send. */
  bytes = 0;
  /** READs that end in it. */
  completions = 0;
  /** Of these, those that succeed. */
  readonly succeeded: PendingRead[] = [];
  /** Bytes of the region in it. */
  payloadBytes = 0;
  failure: Failure | undefined;
  /** The slab that it takes until it is sent, if it takes one. */
  abstract readonly slab: Slab | undefined;
  protected readonly checksum: boolean;

  constructor(checksum: boolean) {
    this.checksum = checksum;
  }

  /** Plans frames for the READs at the front of `queue`, up to `bytesMax`; READs that are planned whole leave it. */
  plan(queue: PendingRead[], region: Region, bytesMax: number): void {
    while (queue.length > 0 && !this.fatal) {
      const read = queue[0]!;
      if (read.failure !== undefined) {
        if (bytesMax - this.bytes < FRAME_HEADER_BYTES + REASON_BYTES_MAX) return;
        queue.shift();
        this.fail(read, read.failure);
        return;
      }
      const left = read.length - read.planned;
      const room = bytesMax - this.bytes - FRAME_HEADER_BYTES;
      if (room < 0 || (room < left && room < PIECE_BYTES_MIN)) return;
      const payloadBytes = Math.min(left, room);
      const offset = read.planned;
      read.planned += payloadBytes;
      const last = read.planned === read.length;
      this.place({ read, offset, payloadBytes, last }, region);
      this.bytes += FRAME_HEADER_BYTES + payloadBytes;
      if (last) {
        queue.shift();
        this.completions++;
      }
    }
  }

  /** Gets the bytes and seals the burst, then calls back; never fails. */
  abstract fill(openFiles: OpenFiles, done: () => void): void;

  /** Hands the sealed burst to a socket; calls back when nothing of it is needed any more. */
  abstract write(socket: Socket, done: () => void): void;

  /** Finds room for a frame behind those that are there, and for the bytes of its payload. */
  protected abstract place(frame: PlannedFrame, region: Region): void;

  /** Finds room for the error frame behind `this.bytes`, and returns the number of its bytes. */
  protected abstract placeError(read: PendingRead, failure: Failure): number;

  /** Ends the burst, and with it the pair, with an error frame behind `this.bytes`. */
  protected fail(read: PendingRead, failure: Failure): void {
    this.bytes += this.placeError(read, failure);
    this.fatal = true;
    this.failure = failure;
    this.completions++;
  }

  protected encodeHeader(view: DataView, at: number, frame: PlannedFrame, payload: readonly Uint8Array[]): void {
    this.payloadBytes += frame.payloadBytes;
    if (frame.last) this.succeeded.push(frame.read);
    encodePayloadHeader(view, at, {
      last: frame.last,
      payloadBytes: frame.payloadBytes,
      wrLow: frame.read.wrLow,
      wrHigh: frame.read.wrHigh,
      offset: frame.offset,
      status: WC.SUCCESS,
      crc: this.#crcOf(payload),
    });
  }

  protected encodeErrorHeader(
    view: DataView,
    at: number,
    read: PendingRead,
    { status, stale = false }: Failure,
    reason: Uint8Array,
  ): void {
    encodePayloadHeader(view, at, {
      last: true,
      stale,
      payloadBytes: reason.byteLength,
      wrLow: read.wrLow,
      wrHigh: read.wrHigh,
      offset: 0,
      status,
      crc: this.#crcOf([reason]),
    });
  }

  #crcOf(pieces: readonly Uint8Array[]): number {
    if (!this.checksum) return 0;
    let crc = 0;
    for (const piece of pieces) crc = crc32(piece, crc);
    return crc;
  }
}
