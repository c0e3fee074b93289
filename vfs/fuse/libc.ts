/**
 * The C library, as far as Node.js has no way to its functions: mount, descriptors over sockets, ioctl, and reads
 * that do not throw. The only file of the mount that knows koffi, which is loaded at the first use, so that programs
 * that mount nothing work without it. Functions return what C returns; `errno` is that of the last call on this thread.
 */
import { MountError } from '../errors.ts';

export interface PollHandle {
  stop(): void;
  close(): void;
}

export interface Libc {
  mount(source: string, folder: string, type: string, flags: number, options: string): number;
  /** In a thread of its own: the kernel may ask the mount something meanwhile. Gives errno, 0 when it is done. */
  umount(folder: string, flags: number): Promise<number>;
  /** Makes reads of a descriptor that others opened fail with EAGAIN where they would wait. */
  setNonBlocking(descriptor: number): void;
  /** Bytes read, or -1. */
  read(descriptor: number, into: Uint8Array, length: number): number;
  socketPair(): [number, number];
  /** The descriptor that was sent over a socket, or -1. */
  receiveDescriptor(socket: number): number;
  /** An ioctl with the address of `argument`. */
  ioctl(descriptor: number, request: number, argument: Uint8Array): number;
  errno(): number;
  /**
   * Makes memory present that has not been touched yet, in a thread of its own: a page at a time, when it is first
   * written, that costs more than what is written. Does nothing on kernels that can't (before 5.14).
   */
  populate(memory: Uint8Array): Promise<void>;
  /**
   * Has malloc give large blocks back to the system when they are freed, and threads share two heaps: what many replies
   * took in passing would stay with the process. Does nothing where malloc is another than glibc's.
   */
  keepHeapSmall(): void;
  /** Ends the process within this call: no thread of it is taken apart first. */
  exit(code: number): void;
  /** Calls back whenever the descriptor has something to read or was hung up. */
  poll(descriptor: number, onReady: () => void): PollHandle;
}

const AF_UNIX = 1;
const SOCK_STREAM = 1;
const SOCK_CLOEXEC = 0o2000000;
const F_GETFL = 3;
const F_SETFL = 4;
const O_NONBLOCK = 0o4000;
const MSG_DONTWAIT = 0x40;
const MSG_CMSG_CLOEXEC = 0x40000000;
const SOL_SOCKET = 1;
const MADV_POPULATE_WRITE = 23;
const SCM_RIGHTS = 1;
const M_MMAP_THRESHOLD = -3;
/** mallopt(3): how many heaps threads may have. */
const M_ARENA_MAX = -8;
/** Where malloc begins by itself; it would raise it with the first large block that is freed. */
const LARGE_BLOCK_BYTES = 128 * 1024;

let loaded: Promise<Libc> | undefined;

/** Throws MountError PLATFORM or NO_LIBC with what to do. */
export function loadLibc(): Promise<Libc> {
  loaded ??= load().catch((error: unknown) => {
    loaded = undefined;
    throw error;
  });
  return loaded;
}

async function load(): Promise<Libc> {
  if (process.platform !== 'linux') {
    throw new MountError('PLATFORM', `only Linux can mount, this is ${process.platform}; qanat scan and cp work here`);
  }
  try {
    return await bind();
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new MountError('NO_LIBC', `the C library can't be called (${why}): install the optional package koffi`, {
      cause,
    });
  }
}

async function bind(): Promise<Libc> {
  const { default: koffi } = await import('koffi');
  // the symbols that Node.js itself is linked with, whichever C library that is
  const c = koffi.load(null);
  const mount = c.func('int mount(const char*, const char*, const char*, unsigned long, const char*)');
  const umount2 = c.func('int umount2(const char*, int)');
  const read = c.func('intptr_t read(int, uint8_t*, size_t)');
  const socketpair = c.func('int socketpair(int, int, int, _Out_ int*)');
  const recvmsg = c.func('intptr_t recvmsg(int, uint8_t*, int)');
  const fcntl = c.func('int fcntl(int, int, ...)');
  const exit = c.func('void _exit(int)');
  const madvise = c.func('int madvise(uintptr_t, size_t, int)');
  const ioctl = c.func('int ioctl(int, unsigned long, _Inout_ uint8_t*)');
  return {
    mount,
    umount: (folder, flags) =>
      new Promise((resolve, reject) => {
        umount2.async(folder, flags, (error: unknown, result: number) => {
          if (error === null || error === undefined) resolve(result === 0 ? 0 : koffi.errno());
          else reject(error);
        });
      }),
    setNonBlocking(descriptor) {
      const flags: number = fcntl(descriptor, F_GETFL);
      if (flags < 0 || fcntl(descriptor, F_SETFL, 'int', flags | O_NONBLOCK) < 0) {
        throw new MountError('REFUSED', `the descriptor can't be made non-blocking: errno ${koffi.errno()}`);
      }
    },
    read,
    socketPair() {
      const ends: [number, number] = [-1, -1];
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) !== 0) {
        throw new MountError('REFUSED', `no pair of sockets: errno ${koffi.errno()}`);
      }
      return ends;
    },
    receiveDescriptor(socket) {
      const one = Buffer.alloc(8);
      const { message, control } = buildMessage(koffi.address, one);
      const received: number | bigint = recvmsg(socket, message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
      return Number(received) < 1 ? -1 : parseControl(control);
    },
    ioctl,
    errno: () => koffi.errno(),
    populate: (memory) =>
      new Promise((resolve) => {
        madvise.async(koffi.address(memory), memory.byteLength, MADV_POPULATE_WRITE, () => resolve());
      }),
    keepHeapSmall() {
      const mallopt = optional(() => c.func('int mallopt(int, int)'));
      mallopt?.(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES);
      mallopt?.(M_ARENA_MAX, 2);
    },
    exit,
    poll: (descriptor, onReady) =>
      koffi.node.poll(descriptor, { readable: true, disconnect: true }, () => {
        onReady();
      }),
  };
}

/** What a C library need not have. */
function optional<T>(find: () => T): T | undefined {
  try {
    return find();
  } catch {
    return undefined;
  }
}

/** struct msghdr of a 64-bit system, with room for one byte and one descriptor. */
function buildMessage(address: (of: Buffer) => bigint, one: Buffer): { message: Buffer; control: Buffer } {
  const vector = Buffer.alloc(16);
  const control = Buffer.alloc(64);
  const message = Buffer.alloc(56);
  vector.writeBigUInt64LE(address(one), 0);
  vector.writeBigUInt64LE(1n, 8);
  message.writeBigUInt64LE(address(vector), 16); // msg_iov
  message.writeBigUInt64LE(1n, 24);
  message.writeBigUInt64LE(address(control), 32); // msg_control
  message.writeBigUInt64LE(BigInt(control.length), 40);
  return { message, control };
}

/** struct cmsghdr with one int behind it. */
function parseControl(control: Buffer): number {
  const whole = control.readBigUInt64LE(0) === 20n;
  const rights = control.readInt32LE(8) === SOL_SOCKET && control.readInt32LE(12) === SCM_RIGHTS;
  return whole && rights ? control.readInt32LE(16) : -1;
}
