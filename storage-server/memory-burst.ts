/**
 * A burst of a region that is all in memory: headers of its own, payloads as views of the pinned bytes, so that nothing
 * is copied before the kernel does it. Takes no slab: what it adds to memory are its headers.
 */
import type { Socket } from 'node:net';
import { Burst, type Failure, type PendingRead, type PlannedFrame } from './burst.ts';
import { COPIED_PAYLOAD_BYTES_MAX } from './limits.ts';
import type { OpenFiles } from './open-files.ts';
import { encodeReason, FRAME_HEADER_BYTES, viewOf } from './protocol/index.ts';
import type { Region } from './region.ts';

/** Zeros between files, in pieces of at most this. */
const ZEROS = new Uint8Array(64 * 1024);

export class MemoryBurst extends Burst {
  readonly slab = undefined;
  readonly #pieces: Uint8Array[] = [];

  protected place(frame: PlannedFrame, region: Region): void {
    const payload: Uint8Array[] = [];
    if (frame.payloadBytes > 0) {
      region.visit(frame.read.address + frame.offset, frame.payloadBytes, {
        bytes: (piece) => payload.push(piece),
        zeros: (length) => {
          for (let left = length; left > 0; left -= ZEROS.byteLength) payload.push(ZEROS.subarray(0, left));
        },
        file: ({ path }) => {
          throw new Error(`${path} is not pinned`);
        },
      });
    }
    const copied = frame.payloadBytes <= COPIED_PAYLOAD_BYTES_MAX;
    const header = Buffer.allocUnsafe(FRAME_HEADER_BYTES + (copied ? frame.payloadBytes : 0));
    this.encodeHeader(viewOf(header), 0, frame, payload);
    this.#pieces.push(header);
    if (!copied) {
      this.#pieces.push(...payload);
      return;
    }
    let at = FRAME_HEADER_BYTES;
    for (const piece of payload) {
      header.set(piece, at);
      at += piece.byteLength;
    }
  }

  protected placeError(read: PendingRead, failure: Failure): number {
    const text = encodeReason(failure.reason);
    const frame = Buffer.allocUnsafe(FRAME_HEADER_BYTES + text.byteLength);
    frame.set(text, FRAME_HEADER_BYTES);
    this.encodeErrorHeader(viewOf(frame), 0, read, failure, text);
    this.#pieces.push(frame);
    return frame.byteLength;
  }

  fill(_openFiles: OpenFiles, done: () => void): void {
    this.filled = true;
    done();
  }

  write(socket: Socket, done: () => void): void {
    const last = this.#pieces.length - 1;
    socket.cork();
    for (const [k, piece] of this.#pieces.entries()) {
      if (k === last) socket.write(piece, done);
      else socket.write(piece);
    }
    socket.uncork();
  }
}
