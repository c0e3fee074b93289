/**
 * One burst of one queue pair: as many frames as fit in a slab, laid out as they go over the wire, so that a burst is one
 * write. READs that follow each other in a file are read from storage in one go. When all bytes are there, each file
 * is checked once; a file that can't be read or has changed turns its first frame into the error that ends the pair.
 */
import { readv } from 'node:fs';
import { crc32 } from 'node:zlib';
import { PIECE_BYTES_MIN } from './limits.ts';
import { FILE_CHANGED, type OpenFile, type OpenFiles } from './open-files.ts';
import { encodePayloadHeader, encodeReason, FRAME_HEADER_BYTES, REASON_BYTES_MAX, WC } from './protocol/index.ts';
import type { Region, ServedFile } from './region.ts';
import type { Slab } from './slab-pool.ts';

/** A READ that is not complete yet, or the error that it will be answered with. */
export interface PendingRead {
  readonly wrLow: number;
  readonly wrHigh: number;
  readonly address: number;
  readonly length: number;
  /** Bytes that frames have been planned for. */
  planned: number;
  readonly failure?: { readonly status: number; readonly reason: string };
}

interface Frame {
  readonly headerAt: number;
  readonly payloadBytes: number;
  readonly read: PendingRead;
  readonly offset: number;
  readonly last: boolean;
  readonly files: ServedFile[];
}

/** Consecutive bytes of one file, into one or more places. */
interface Fetch {
  readonly file: ServedFile;
  readonly start: number;
  end: number;
  readonly into: Uint8Array[];
}

export class Burst {
  readonly slab: Slab;
  /** All bytes are there and checked; the burst can be sent. */
  filled = false;
  /** The pair ends with this burst. */
  fatal = false;
  /** Bytes of the slab to send. */
  bytes = 0;
  /** READs that end in it. */
  completions = 0;
  failure: { status: number; reason: string } | undefined;
  readonly #frames: Frame[] = [];
  readonly #fetches: Fetch[] = [];
  readonly #faults = new Map<ServedFile, string>();
  readonly #checksum: boolean;
  #pending = 0;

  constructor(slab: Slab, checksum: boolean) {
    this.slab = slab;
    this.#checksum = checksum;
  }

  /** Plans frames for the READs at the front of `queue`, up to `bytesMax`; READs that are planned whole leave it. */
  plan(queue: PendingRead[], region: Region, bytesMax: number): void {
    const limit = Math.min(bytesMax, this.slab.bytes.byteLength);
    while (queue.length > 0 && !this.fatal) {
      const read = queue[0]!;
      if (read.failure !== undefined) {
        if (limit - this.bytes < FRAME_HEADER_BYTES + REASON_BYTES_MAX) return;
        queue.shift();
        this.#fail(this.bytes, read, read.failure);
        return;
      }
      const left = read.length - read.planned;
      const room = limit - this.bytes - FRAME_HEADER_BYTES;
      if (room < 0 || (room < left && room < PIECE_BYTES_MIN)) return;
      this.#planFrame(read, Math.min(left, room), region);
      if (read.planned === read.length) {
        queue.shift();
        this.completions++;
      }
    }
  }

  #planFrame(read: PendingRead, payloadBytes: number, region: Region): void {
    const headerAt = this.bytes;
    const files: ServedFile[] = [];
    const { bytes } = this.slab;
    let at = headerAt + FRAME_HEADER_BYTES;
    if (payloadBytes > 0) {
      region.visit(read.address + read.planned, payloadBytes, {
        bytes: (piece) => {
          bytes.set(piece, at);
          at += piece.byteLength;
        },
        zeros: (length) => {
          bytes.fill(0, at, at + length);
          at += length;
        },
        file: (file, offset, length) => {
          files.push(file);
          this.#fetch(file, offset, bytes.subarray(at, at + length));
          at += length;
        },
      });
    }
    const offset = read.planned;
    read.planned += payloadBytes;
    this.#frames.push({ headerAt, payloadBytes, read, offset, last: read.planned === read.length, files });
    this.bytes = headerAt + FRAME_HEADER_BYTES + payloadBytes;
  }

  #fetch(file: ServedFile, start: number, into: Uint8Array): void {
    const previous = this.#fetches.at(-1);
    if (previous !== undefined && previous.file === file && previous.end === start) {
      previous.into.push(into);
      previous.end += into.byteLength;
    } else {
      this.#fetches.push({ file, start, end: start + into.byteLength, into: [into] });
    }
  }

  /** Reads what was planned from storage, checks it, writes the headers, then calls back; never fails. */
  fill(openFiles: OpenFiles, done: () => void): void {
    const opened: OpenFile[] = [];
    this.#pending = 1;
    const settle = (): void => {
      this.#pending--;
      if (this.#pending > 0) return;
      for (const file of new Set(opened)) {
        if (!openFiles.unchanged(file)) this.#faults.set(file.file, FILE_CHANGED);
      }
      for (const file of opened) openFiles.release(file);
      this.#seal();
      done();
    };
    for (const fetch of this.#fetches) {
      this.#pending++;
      openFiles.acquire(fetch.file, (error, file) => {
        if (file === undefined) {
          this.#faults.set(fetch.file, error ?? 'it could not be opened');
          settle();
          return;
        }
        opened.push(file);
        readFully(file.fd, fetch.into, fetch.start, (fault) => {
          if (fault !== undefined) this.#faults.set(fetch.file, fault);
          settle();
        });
      });
    }
    settle();
  }

  #seal(): void {
    this.filled = true;
    const { bytes, view } = this.slab;
    let completions = 0;
    for (const frame of this.#frames) {
      if (this.#faults.size > 0) {
        const faulty = frame.files.find((file) => this.#faults.has(file));
        if (faulty !== undefined) {
          const reason = `${faulty.path}: ${this.#faults.get(faulty)}`;
          this.completions = completions;
          this.#fail(frame.headerAt, frame.read, { status: WC.REM_OP_ERR, reason });
          return;
        }
      }
      const payloadAt = frame.headerAt + FRAME_HEADER_BYTES;
      if (frame.last) completions++;
      encodePayloadHeader(view, frame.headerAt, {
        last: frame.last,
        payloadBytes: frame.payloadBytes,
        wrLow: frame.read.wrLow,
        wrHigh: frame.read.wrHigh,
        offset: frame.offset,
        status: WC.SUCCESS,
        crc: this.#checksum ? crc32(bytes.subarray(payloadAt, payloadAt + frame.payloadBytes)) : 0,
      });
    }
  }

  /** Ends the burst, and with it the pair, with an error frame at `at`. */
  #fail(at: number, read: PendingRead, failure: { status: number; reason: string }): void {
    const reason = encodeReason(failure.reason).subarray(0, this.slab.bytes.byteLength - at - FRAME_HEADER_BYTES);
    this.slab.bytes.set(reason, at + FRAME_HEADER_BYTES);
    encodePayloadHeader(this.slab.view, at, {
      last: true,
      payloadBytes: reason.byteLength,
      wrLow: read.wrLow,
      wrHigh: read.wrHigh,
      offset: 0,
      status: failure.status,
      crc: this.#checksum ? crc32(reason) : 0,
    });
    this.bytes = at + FRAME_HEADER_BYTES + reason.byteLength;
    this.fatal = true;
    this.failure = failure;
    this.completions++;
  }
}

/** Reads until every place is full; calls back with what went wrong, or nothing. */
function readFully(fd: number, into: Uint8Array[], position: number, done: (fault: string | undefined) => void): void {
  readv(fd, into, position, (error, bytesRead) => {
    if (error !== null) return done(error.message);
    let left = bytesRead;
    let rest = into;
    while (rest.length > 0 && left >= rest[0]!.byteLength) {
      left -= rest[0]!.byteLength;
      rest = rest.slice(1);
    }
    if (rest.length === 0) return done(undefined);
    if (bytesRead === 0) return done('the file is shorter than it was');
    readFully(fd, [rest[0]!.subarray(left), ...rest.slice(1)], position + bytesRead, done);
  });
}
