/**
 * A burst whose bytes come from storage, laid out in a slab as they go over the wire. READs that follow each other in a
 * file are read in one go, and each file is checked once for all of them.
 */
import type { Socket } from 'node:net';
import { Burst, type Failure, type PendingRead, type PlannedFrame } from './burst.ts';
import type { OpenFiles } from './open-files.ts';
import { encodeReason, FRAME_HEADER_BYTES, WC } from './protocol/index.ts';
import type { Region } from './region.ts';
import type { ServedFile } from './served-file.ts';
import type { Slab } from './slab-pool.ts';
import { type StorageFaults, StorageReads } from './storage-reads.ts';

interface StoredFrame extends PlannedFrame {
  readonly headerAt: number;
  readonly files: ServedFile[];
}

export class StoredBurst extends Burst {
  readonly slab: Slab;
  readonly #frames: StoredFrame[] = [];
  readonly #reads = new StorageReads();

  constructor(slab: Slab, checksum: boolean) {
    super(checksum);
    this.slab = slab;
  }

  override plan(queue: PendingRead[], region: Region, bytesMax: number): void {
    super.plan(queue, region, Math.min(bytesMax, this.slab.bytes.byteLength));
  }

  protected place(frame: PlannedFrame, region: Region): void {
    const headerAt = this.bytes;
    const files: ServedFile[] = [];
    const { bytes } = this.slab;
    let at = headerAt + FRAME_HEADER_BYTES;
    if (frame.payloadBytes > 0) {
      region.visit(frame.read.address + frame.offset, frame.payloadBytes, {
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
          this.#reads.add(file, offset, bytes.subarray(at, at + length));
          at += length;
        },
      });
    }
    this.#frames.push({ ...frame, headerAt, files });
  }

  fill(openFiles: OpenFiles, done: () => void): void {
    this.#reads.run(openFiles, (faults) => {
      this.#seal(faults);
      done();
    });
  }

  write(socket: Socket, done: () => void): void {
    socket.write(this.slab.bytes.subarray(0, this.bytes), done);
  }

  #seal(faults: StorageFaults): void {
    this.filled = true;
    const { bytes, view } = this.slab;
    let completions = 0;
    for (const frame of this.#frames) {
      const faulty = faults.size === 0 ? undefined : frame.files.find(({ store }) => faults.has(store));
      if (faulty !== undefined) {
        this.completions = completions;
        this.bytes = frame.headerAt;
        const { reason, stale } = faults.get(faulty.store)!;
        this.fail(frame.read, { status: WC.REM_OP_ERR, reason: `${faulty.path}: ${reason}`, stale });
        return;
      }
      if (frame.last) completions++;
      const payloadAt = frame.headerAt + FRAME_HEADER_BYTES;
      this.encodeHeader(view, frame.headerAt, frame, [bytes.subarray(payloadAt, payloadAt + frame.payloadBytes)]);
    }
  }

  protected placeError(read: PendingRead, failure: Failure): number {
    const { bytes, view } = this.slab;
    const at = this.bytes;
    const text = encodeReason(failure.reason).subarray(0, bytes.byteLength - at - FRAME_HEADER_BYTES);
    bytes.set(text, at + FRAME_HEADER_BYTES);
    this.encodeErrorHeader(view, at, read, failure, text);
    return FRAME_HEADER_BYTES + text.byteLength;
  }
}
