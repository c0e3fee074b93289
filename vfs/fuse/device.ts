/**
 * The binding to a real kernel: a descriptor of /dev/fuse that was mounted. Polled, not read by a waiting thread: a
 * thread in read(2) there keeps its process from exiting. A reply is one writev(2) of views where they lie, so no byte
 * of a file is copied in this process.
 */
import { closeSync, writevSync } from 'node:fs';
import { endianness } from 'node:os';
import { Errno, errnoName } from '../errno.ts';
import { MountError } from '../errors.ts';
import type { BackingFiles, BindingReceiver, FuseBinding, Sent } from './binding.ts';
import type { Libc, PollHandle } from './libc.ts';
import { REQUEST_BUFFER_BYTES, REQUESTS_IN_A_ROW_MAX } from './limits.ts';
import { FUSE_DEV_IOC_BACKING_CLOSE, FUSE_DEV_IOC_BACKING_OPEN } from './protocol.ts';

export class DeviceBinding implements FuseBinding {
  readonly backing: BackingFiles;
  readonly #libc: Libc;
  readonly #descriptor: number;
  readonly #buffer = new Uint8Array(REQUEST_BUFFER_BYTES);
  #receiver: BindingReceiver | undefined;
  #poll: PollHandle | undefined;
  #closed = false;

  /** The descriptor is non-blocking, and this binding's from now on. */
  constructor(libc: Libc, descriptor: number) {
    if (endianness() !== 'LE') throw new MountError('PLATFORM', 'only little-endian machines can mount');
    this.#libc = libc;
    this.#descriptor = descriptor;
    this.backing = new DeviceBackingFiles(libc, descriptor);
  }

  start(receiver: BindingReceiver): void {
    this.#receiver = receiver;
    process.once('exit', this.#onExit);
    this.#poll = this.#libc.poll(this.#descriptor, () => this.#drain());
  }

  send(parts: readonly Uint8Array[]): Sent {
    if (this.#closed) return 'ended';
    return sendMessage(this.#descriptor, parts);
  }

  /** A thread that ends while koffi still polls takes the whole process with it (koffi 3.3, SIGSEGV). */
  readonly #onExit = (): void => this.close();

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    process.off('exit', this.#onExit);
    this.#poll?.stop();
    this.#poll?.close();
    closeSync(this.#descriptor);
  }

  /** Takes requests until there are none, or until others of this thread should have a turn: poll then calls again. */
  #drain(): void {
    for (let taken = 0; taken < REQUESTS_IN_A_ROW_MAX && !this.#closed; taken++) {
      const bytes = Number(this.#libc.read(this.#descriptor, this.#buffer, REQUEST_BUFFER_BYTES));
      if (bytes >= 0) {
        this.#receiver!.request(this.#buffer.subarray(0, bytes));
        continue;
      }
      const errno = this.#libc.errno();
      if (errno === Errno.EAGAIN) return;
      // ENOENT: the request was taken back while it was being read
      if (errno === Errno.EINTR || errno === Errno.ENOENT) continue;
      this.#poll?.stop();
      this.#receiver!.ended(errno === Errno.ENODEV ? undefined : cut(errno));
      return;
    }
  }
}

function cut(errno: number): MountError {
  const why = errno === Errno.ECONNABORTED ? 'aborted, by a person or by its request timeout' : errnoName(errno);
  return new MountError('STOPPED', `the kernel's connection was cut: ${why}`);
}

/** Writes one message to a descriptor of /dev/fuse. */
export function sendMessage(descriptor: number, parts: readonly Uint8Array[]): Sent {
  try {
    writevSync(descriptor, parts);
    return 'taken';
  } catch (error) {
    switch ((error as NodeJS.ErrnoException).code) {
      case 'ENOENT':
        return 'unknown';
      case 'ENODEV':
      case 'EBADF':
      case 'ENOTCONN':
      case 'ECONNABORTED':
      case 'EPERM': // what a device gives whose mount has not happened, or is over
        return 'ended';
      default:
        return 'refused';
    }
  }
}

/** struct fuse_backing_map. */
const BACKING_MAP_BYTES = 16;

class DeviceBackingFiles implements BackingFiles {
  readonly #libc: Libc;
  readonly #descriptor: number;

  constructor(libc: Libc, descriptor: number) {
    this.#libc = libc;
    this.#descriptor = descriptor;
  }

  open(descriptor: number): number {
    const map = new Uint8Array(BACKING_MAP_BYTES);
    new DataView(map.buffer).setInt32(0, descriptor, true);
    const id = this.#libc.ioctl(this.#descriptor, FUSE_DEV_IOC_BACKING_OPEN, map);
    if (id > 0) return id;
    const errno = this.#libc.errno();
    const code = errno === Errno.EPERM ? 'NOT_PERMITTED' : 'REFUSED';
    throw new MountError(code, `the kernel takes no backing file: ${errnoName(errno)}`);
  }

  close(id: number): void {
    const argument = new Uint8Array(4);
    new DataView(argument.buffer).setUint32(0, id, true);
    this.#libc.ioctl(this.#descriptor, FUSE_DEV_IOC_BACKING_CLOSE, argument);
  }
}
