/**
 * Requests of a FUSE kernel, from bytes (linux/fuse.h: struct fuse_in_header and the *_in structs). Strict: a message
 * is exactly as long as it says, a struct lies whole inside it, a name ends with its only NUL at the end of the
 * message. What does not parse is a MountError PROTOCOL that knows the request's unique when the header could be read,
 * so that the caller can still be answered, if it expects an answer. Longer structs than ours are accepted: later minor versions append fields.
 */
import { MountError } from '../errors.ts';
import { BATCH_FORGET_MAX, FUSE_NAME_BYTES_MAX } from './limits.ts';
import { FUSE_GETATTR_FH, Opcode, SizeOf } from './protocol.ts';

export interface RequestHeader {
  readonly opcode: number;
  /** Below 2^53, as every number here: a kernel counts up from nothing. */
  readonly unique: number;
  readonly nodeId: number;
  readonly uid: number;
  readonly gid: number;
  readonly pid: number;
}

export interface Forget {
  readonly nodeId: number;
  readonly lookups: number;
}

export type RequestBody =
  | {
      readonly op: 'INIT';
      readonly major: number;
      readonly minor: number;
      readonly maxReadahead: number;
      readonly flags: number;
      readonly flags2: number;
    }
  /** A name that is not UTF-8 is undefined: no file of ours has such. */
  | { readonly op: 'LOOKUP'; readonly name: string | undefined }
  | { readonly op: 'FORGET'; readonly forgets: readonly Forget[] }
  | { readonly op: 'GETATTR' | 'STATX'; readonly handle: number | undefined }
  | { readonly op: 'OPEN' | 'OPENDIR'; readonly flags: number }
  | {
      readonly op: 'READ' | 'READDIR' | 'READDIRPLUS';
      readonly handle: number;
      /** Not exact from 2^53 on, which is beyond the end of any file. */
      readonly offset: number;
      readonly size: number;
    }
  | { readonly op: 'RELEASE' | 'RELEASEDIR'; readonly handle: number }
  | { readonly op: 'GETXATTR'; readonly name: string | undefined; readonly size: number }
  | { readonly op: 'LISTXATTR'; readonly size: number }
  | { readonly op: 'ACCESS'; readonly mask: number }
  | { readonly op: 'INTERRUPT'; readonly target: number }
  | { readonly op: 'STATFS' | 'READLINK' | 'IOCTL' | 'DESTROY' | 'NOTIFY_REPLY' }
  /** Whatever would change something. */
  | { readonly op: 'WRITE' }
  | { readonly op: 'UNKNOWN' };

export interface FuseRequest {
  readonly header: RequestHeader;
  readonly body: RequestBody;
}

function protocolError(reason: string, unique?: number): MountError {
  return new MountError('PROTOCOL', reason, unique === undefined ? {} : { unique });
}

const names = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Parses one whole message. Throws MountError PROTOCOL and nothing else. Nothing of `bytes` is kept. */
export function parseRequest(bytes: Uint8Array): FuseRequest {
  const length = bytes.byteLength;
  if (length < SizeOf.fuse_in_header) throw protocolError(`a message of ${length} bytes has no header`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, length);
  const unique = u64(view, 8, 'unique');
  const said = view.getUint32(0, true);
  const opcode = view.getUint32(4, true);
  const answered = UNANSWERED.has(opcode) ? undefined : unique;
  if (said !== length) throw protocolError(`a message of ${length} bytes says that it has ${said}`, answered);
  // extensions (security contexts, supplementary groups) come last, in units of 8 bytes
  const end = length - view.getUint16(36, true) * 8;
  if (end < SizeOf.fuse_in_header) throw protocolError('extensions are longer than the message', answered);
  const header = {
    opcode,
    unique,
    nodeId: u64(view, 16, 'nodeid', answered),
    uid: view.getUint32(24, true),
    gid: view.getUint32(28, true),
    pid: view.getUint32(32, true),
  };
  return { header, body: parseBody(opcode, new Body(bytes, view, end, answered)) };
}

/** Requests that a kernel expects no answer to. */
const UNANSWERED: ReadonlySet<number> = new Set([
  Opcode.FUSE_FORGET,
  Opcode.FUSE_BATCH_FORGET,
  Opcode.FUSE_INTERRUPT,
  Opcode.FUSE_NOTIFY_REPLY,
]);

function u64(view: DataView, at: number, what: string, unique?: number): number {
  const high = view.getUint32(at + 4, true);
  if (high >= 0x200000) throw protocolError(`${what} is 2^53 or more`, unique);
  return high * 0x100000000 + view.getUint32(at, true);
}

function parseBody(opcode: number, body: Body): RequestBody {
  switch (opcode) {
    case Opcode.FUSE_READ:
      return parseRead(body, 'READ');
    case Opcode.FUSE_READDIR:
      return parseRead(body, 'READDIR');
    case Opcode.FUSE_READDIRPLUS:
      return parseRead(body, 'READDIRPLUS');
    case Opcode.FUSE_LOOKUP:
      return { op: 'LOOKUP', name: body.name(0) };
    case Opcode.FUSE_FORGET:
      return { op: 'FORGET', forgets: [{ nodeId: body.nodeId(), lookups: body.u64(0, 'nlookup') }] };
    case Opcode.FUSE_BATCH_FORGET:
      return { op: 'FORGET', forgets: parseBatchForget(body) };
    case Opcode.FUSE_GETATTR:
      body.need(16);
      return { op: 'GETATTR', handle: body.u32(0) & FUSE_GETATTR_FH ? body.u64(8, 'fh') : undefined };
    case Opcode.FUSE_STATX:
      body.need(24);
      return { op: 'STATX', handle: body.u32(0) & FUSE_GETATTR_FH ? body.u64(8, 'fh') : undefined };
    case Opcode.FUSE_OPEN:
      body.need(8);
      return { op: 'OPEN', flags: body.u32(0) };
    case Opcode.FUSE_OPENDIR:
      body.need(8);
      return { op: 'OPENDIR', flags: body.u32(0) };
    case Opcode.FUSE_RELEASE:
      body.need(24);
      return { op: 'RELEASE', handle: body.u64(0, 'fh') };
    case Opcode.FUSE_RELEASEDIR:
      body.need(24);
      return { op: 'RELEASEDIR', handle: body.u64(0, 'fh') };
    case Opcode.FUSE_INIT:
      return parseInit(body);
    case Opcode.FUSE_GETXATTR:
      return { op: 'GETXATTR', size: body.u32(0), name: body.name(8) };
    case Opcode.FUSE_LISTXATTR:
      body.need(8);
      return { op: 'LISTXATTR', size: body.u32(0) };
    case Opcode.FUSE_ACCESS:
      body.need(8);
      return { op: 'ACCESS', mask: body.u32(0) };
    case Opcode.FUSE_INTERRUPT:
      return { op: 'INTERRUPT', target: body.u64(0, 'unique') };
    case Opcode.FUSE_STATFS:
      return { op: 'STATFS' };
    case Opcode.FUSE_READLINK:
      return { op: 'READLINK' };
    case Opcode.FUSE_IOCTL:
      return { op: 'IOCTL' };
    case Opcode.FUSE_DESTROY:
      return { op: 'DESTROY' };
    case Opcode.FUSE_NOTIFY_REPLY:
      return { op: 'NOTIFY_REPLY' };
    default:
      return { op: WRITES.has(opcode) ? 'WRITE' : 'UNKNOWN' };
  }
}

const WRITES: ReadonlySet<number> = new Set([
  Opcode.FUSE_SETATTR,
  Opcode.FUSE_SYMLINK,
  Opcode.FUSE_MKNOD,
  Opcode.FUSE_MKDIR,
  Opcode.FUSE_UNLINK,
  Opcode.FUSE_RMDIR,
  Opcode.FUSE_RENAME,
  Opcode.FUSE_LINK,
  Opcode.FUSE_WRITE,
  Opcode.FUSE_SETXATTR,
  Opcode.FUSE_REMOVEXATTR,
  Opcode.FUSE_CREATE,
  Opcode.FUSE_FALLOCATE,
  Opcode.FUSE_RENAME2,
  Opcode.FUSE_COPY_FILE_RANGE,
  Opcode.FUSE_TMPFILE,
]);

/** struct fuse_read_in. */
function parseRead<Op extends 'READ' | 'READDIR' | 'READDIRPLUS'>(body: Body, op: Op) {
  body.need(40);
  return { op, handle: body.u64(0, 'fh'), offset: body.large(8), size: body.u32(16) };
}

/** struct fuse_init_in: 16 bytes before protocol 7.36. */
function parseInit(body: Body): RequestBody {
  body.need(8);
  const major = body.u32(0);
  const minor = body.u32(4);
  if (body.length < SizeOf.fuse_init_in_old) return { op: 'INIT', major, minor, maxReadahead: 0, flags: 0, flags2: 0 };
  const flags2 = body.length >= SizeOf.fuse_init_in ? body.u32(16) : 0;
  return { op: 'INIT', major, minor, maxReadahead: body.u32(8), flags: body.u32(12), flags2 };
}

/** struct fuse_batch_forget_in and its fuse_forget_one. */
function parseBatchForget(body: Body): Forget[] {
  body.need(8);
  const count = body.u32(0);
  if (count > BATCH_FORGET_MAX) body.fail(`${count} forgets at once`);
  body.need(8 + count * 16);
  const forgets: Forget[] = [];
  for (let at = 8; at < 8 + count * 16; at += 16) {
    forgets.push({ nodeId: body.u64(at, 'nodeid'), lookups: body.u64(at + 8, 'nlookup') });
  }
  return forgets;
}

/** What follows the header; offsets count from there, and each is checked. */
class Body {
  readonly length: number;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #end: number;
  readonly #unique: number | undefined;

  constructor(bytes: Uint8Array, view: DataView, end: number, unique: number | undefined) {
    this.#bytes = bytes;
    this.#view = view;
    this.#end = end;
    this.#unique = unique;
    this.length = end - SizeOf.fuse_in_header;
  }

  fail(reason: string): never {
    throw protocolError(reason, this.#unique);
  }

  need(bytes: number): void {
    if (this.length < bytes) this.fail(`a body of ${this.length} bytes where ${bytes} belong`);
  }

  nodeId(): number {
    return u64(this.#view, 16, 'nodeid', this.#unique);
  }

  u32(at: number): number {
    this.need(at + 4);
    return this.#view.getUint32(SizeOf.fuse_in_header + at, true);
  }

  u64(at: number, what: string): number {
    this.need(at + 8);
    return u64(this.#view, SizeOf.fuse_in_header + at, what, this.#unique);
  }

  /** A u64 that need not be exact when it is large. */
  large(at: number): number {
    this.need(at + 8);
    const low = this.#view.getUint32(SizeOf.fuse_in_header + at, true);
    return this.#view.getUint32(SizeOf.fuse_in_header + at + 4, true) * 0x100000000 + low;
  }

  /** The name that takes the rest of the message from `at`. */
  name(at: number): string | undefined {
    this.need(at + 2);
    const start = SizeOf.fuse_in_header + at;
    const last = this.#end - 1;
    if (this.#bytes.indexOf(0, start) !== last) this.fail('a name does not end with the message');
    if (last - start > FUSE_NAME_BYTES_MAX) this.fail(`a name of ${last - start} bytes`);
    try {
      // a copy: the decoder takes no views of shared memory
      return names.decode(this.#bytes.slice(start, last));
    } catch {
      return undefined;
    }
  }
}
