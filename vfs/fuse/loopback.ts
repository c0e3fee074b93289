/**
 * A kernel in the same process, for tests: the binding that needs no device. It sends requests as Linux builds them,
 * checks every answer as fs/fuse/dev.c does and more strictly, and keeps the counts that a kernel keeps: lookups by
 * inode, open handles, backing files. What breaks the protocol is thrown at whoever asked. It does not cache, retry or
 * walk paths.
 */
import assert from 'node:assert/strict';
import type { BackingFiles, BindingReceiver, FuseBinding, Sent } from './binding.ts';
import { FUSE_GETATTR_FH, FUSE_ROOT_ID, Opcode, OpenFlag, SizeOf } from './protocol.ts';

export interface LoopbackReply {
  readonly errno: number;
  readonly body: Uint8Array;
}

export interface LoopbackEntry {
  /** 0 where the name is known not to be there. */
  readonly nodeId: number;
  readonly validS: number;
  readonly attributes: LoopbackAttributes;
}

export interface LoopbackAttributes {
  readonly ino: number;
  readonly length: number;
  readonly mode: number;
  readonly links: number;
  readonly modifiedMs: number;
}

export interface LoopbackDirent {
  readonly name: string;
  readonly ino: number;
  readonly next: number;
  readonly type: number;
  /** Of READDIRPLUS. */
  readonly entry?: LoopbackEntry;
}

export interface LoopbackNotification {
  readonly code: number;
  readonly body: Uint8Array;
}

export class LoopbackKernel implements FuseBinding {
  /** Lookups to be given back, by inode: what the session has counted, too. */
  readonly lookups = new Map<number, number>();
  readonly notifications: LoopbackNotification[] = [];
  /** Backing files by id: descriptors. */
  readonly backingFiles = new Map<number, number>();
  readonly backing: BackingFiles;
  /** The answers to these are not wanted any more. */
  readonly takenBack = new Set<number>();
  /** Inodes with handles that are served by passthrough, and how many. */
  readonly passthroughHandles = new Map<number, number>();
  closed = false;
  #receiver: BindingReceiver | undefined;
  #unique = 0;
  #backingId = 0;
  readonly #waiting = new Map<number, (reply: LoopbackReply) => void>();

  constructor() {
    this.backing = {
      open: (descriptor) => {
        this.backingFiles.set(++this.#backingId, descriptor);
        return this.#backingId;
      },
      close: (id) => assert.ok(this.backingFiles.delete(id), `backing file ${id} is not open`),
    };
  }

  start(receiver: BindingReceiver): void {
    assert.equal(this.#receiver, undefined);
    this.#receiver = receiver;
  }

  send(parts: readonly Uint8Array[]): Sent {
    if (this.closed) return 'ended';
    const bytes = Buffer.concat(parts);
    assert.ok(bytes.length >= SizeOf.fuse_out_header, 'a message has no header');
    assert.equal(bytes.readUInt32LE(0), bytes.length, 'the length of a message is not what it says');
    const error = bytes.readInt32LE(4);
    const unique = Number(bytes.readBigUInt64LE(8));
    const body = bytes.subarray(SizeOf.fuse_out_header);
    if (unique === 0) {
      this.notifications.push({ code: error, body });
      return 'taken';
    }
    assert.ok(error <= 0 && error > -512, `error ${error}`);
    assert.ok(error === 0 || body.length === 0, 'an error has a body');
    if (this.takenBack.delete(unique)) {
      this.#waiting.delete(unique);
      return 'unknown';
    }
    const resolve = this.#waiting.get(unique);
    assert.ok(resolve !== undefined, `request ${unique} was answered twice, or never asked`);
    this.#waiting.delete(unique);
    resolve({ errno: Math.abs(error), body });
    return 'taken';
  }

  close(): void {
    this.closed = true;
  }

  /** Requests without an answer. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** The unique of the last request. */
  get lastUnique(): number {
    return this.#unique;
  }

  /** The unmount: nothing comes any more. */
  end(reason?: Error): void {
    this.closed = true;
    this.#receiver!.ended(reason);
  }

  /** Bytes as they are. */
  deliver(bytes: Uint8Array): void {
    this.#receiver!.request(bytes);
  }

  /** A request with an answer. */
  request(opcode: number, nodeId: number, body: Uint8Array = new Uint8Array(0), pid = 1): Promise<LoopbackReply> {
    const message = this.#message(opcode, nodeId, body, pid);
    const { promise, resolve } = Promise.withResolvers<LoopbackReply>();
    this.#waiting.set(this.#unique, resolve);
    this.deliver(message);
    return promise;
  }

  /** A request without one. */
  post(opcode: number, nodeId: number, body: Uint8Array): void {
    this.deliver(this.#message(opcode, nodeId, body, 0));
  }

  #message(opcode: number, nodeId: number, body: Uint8Array, pid: number): Buffer {
    this.#unique += 2;
    const message = Buffer.alloc(SizeOf.fuse_in_header + body.length);
    message.writeUInt32LE(message.length, 0);
    message.writeUInt32LE(opcode, 4);
    message.writeBigUInt64LE(BigInt(this.#unique), 8);
    message.writeBigUInt64LE(BigInt(nodeId), 16);
    message.writeUInt32LE(pid, 32);
    message.set(body, SizeOf.fuse_in_header);
    return message;
  }

  async init(
    options: { major?: number; minor?: number; flags?: number; flags2?: number } = {},
  ): Promise<LoopbackReply> {
    const { major = 7, minor = 45, flags = 0x7fffffff, flags2 = 0x7fffffff } = options;
    const body = struct(SizeOf.fuse_init_in, [major, minor, 1 << 20, flags, flags2]);
    const reply = await this.request(Opcode.FUSE_INIT, 0, body);
    if (reply.errno === 0) assert.equal(reply.body.length, SizeOf.fuse_init_out);
    return reply;
  }

  async lookup(parent: number, name: string | Uint8Array): Promise<LoopbackEntry | number> {
    const { errno, body } = await this.request(Opcode.FUSE_LOOKUP, parent, terminated(name));
    if (errno !== 0) return errno;
    assert.equal(body.length, SizeOf.fuse_entry_out);
    return this.#takeEntry(body);
  }

  #takeEntry(body: Buffer | Uint8Array): LoopbackEntry {
    const entry = parseEntry(body);
    if (entry.nodeId !== 0) this.lookups.set(entry.nodeId, (this.lookups.get(entry.nodeId) ?? 0) + 1);
    return entry;
  }

  /** Gives lookups back, in a batch when there are several inodes. */
  forget(...nodeIds: number[]): void {
    const forgets = nodeIds.map((nodeId) => [nodeId, this.lookups.get(nodeId) ?? 0] as const);
    for (const nodeId of nodeIds) this.lookups.delete(nodeId);
    if (forgets.length === 1) {
      const body = Buffer.alloc(8);
      body.writeBigUInt64LE(BigInt(forgets[0]![1]));
      this.post(Opcode.FUSE_FORGET, forgets[0]![0], body);
      return;
    }
    const body = Buffer.alloc(8 + forgets.length * 16);
    body.writeUInt32LE(forgets.length, 0);
    for (const [k, [nodeId, lookups]] of forgets.entries()) {
      body.writeBigUInt64LE(BigInt(nodeId), 8 + k * 16);
      body.writeBigUInt64LE(BigInt(lookups), 16 + k * 16);
    }
    this.post(Opcode.FUSE_BATCH_FORGET, 0, body);
  }

  async getattr(nodeId: number, handle?: number): Promise<LoopbackAttributes | number> {
    const body = Buffer.alloc(16);
    if (handle !== undefined) {
      body.writeUInt32LE(FUSE_GETATTR_FH, 0);
      body.writeBigUInt64LE(BigInt(handle), 8);
    }
    const reply = await this.request(Opcode.FUSE_GETATTR, nodeId, body);
    if (reply.errno !== 0) return reply.errno;
    assert.equal(reply.body.length, SizeOf.fuse_attr_out);
    return parseAttr(reply.body, 16);
  }

  /** The handle, and how it is served. Checks the kernel's rules for mixed handles. */
  async open(nodeId: number, flags = 0): Promise<{ handle: number; flags: number } | { errno: number }> {
    const { errno, body } = await this.request(Opcode.FUSE_OPEN, nodeId, struct(8, [flags]));
    if (errno !== 0) return { errno };
    const reply = Buffer.from(body);
    assert.equal(reply.length, SizeOf.fuse_open_out);
    const given = reply.readUInt32LE(8);
    const backed = (given & OpenFlag.FOPEN_PASSTHROUGH) !== 0;
    const backedBefore = this.passthroughHandles.get(nodeId) ?? 0;
    if (backed) {
      assert.ok(this.backingFiles.has(reply.readInt32LE(12)), 'passthrough to a backing file that is not open');
      this.passthroughHandles.set(nodeId, backedBefore + 1);
    } else assert.equal(backedBefore, 0, 'EIO: an inode with passthrough handles is opened without');
    return { handle: Number(reply.readBigUInt64LE(0)), flags: given };
  }

  async release(nodeId: number, handle: number, backed = false): Promise<number> {
    const body = Buffer.alloc(24);
    body.writeBigUInt64LE(BigInt(handle), 0);
    if (backed) this.passthroughHandles.set(nodeId, this.passthroughHandles.get(nodeId)! - 1);
    return (await this.request(Opcode.FUSE_RELEASE, nodeId, body)).errno;
  }

  /** The bytes, or an errno. */
  async read(nodeId: number, handle: number, offset: number, size: number, pid = 1): Promise<Uint8Array | number> {
    const { errno, body } = await this.request(Opcode.FUSE_READ, nodeId, readIn(handle, offset, size), pid);
    if (errno !== 0) return errno;
    assert.ok(body.length <= size, 'more bytes than were asked for');
    return body;
  }

  interrupt(unique: number): void {
    const body = Buffer.alloc(8);
    body.writeBigUInt64LE(BigInt(unique));
    this.post(Opcode.FUSE_INTERRUPT, 0, body);
  }

  async opendir(nodeId: number): Promise<{ handle: number } | { errno: number }> {
    const { errno, body } = await this.request(Opcode.FUSE_OPENDIR, nodeId, struct(8, [0]));
    return errno !== 0 ? { errno } : { handle: Number(Buffer.from(body).readBigUInt64LE(0)) };
  }

  async releasedir(nodeId: number, handle: number): Promise<number> {
    const body = Buffer.alloc(24);
    body.writeBigUInt64LE(BigInt(handle), 0);
    return (await this.request(Opcode.FUSE_RELEASEDIR, nodeId, body)).errno;
  }

  /** Some entries of a listing from `offset` on. */
  async readdir(
    nodeId: number,
    handle: number,
    offset: number,
    size: number,
    plus: boolean,
  ): Promise<LoopbackDirent[]> {
    const opcode = plus ? Opcode.FUSE_READDIRPLUS : Opcode.FUSE_READDIR;
    const { errno, body } = await this.request(opcode, nodeId, readIn(handle, offset, size));
    assert.equal(errno, 0);
    assert.ok(body.length <= size);
    const bytes = Buffer.from(body);
    const entries: LoopbackDirent[] = [];
    for (let at = 0; at < bytes.length; ) {
      const dirent = at + (plus ? SizeOf.fuse_entry_out : 0);
      const length = bytes.readUInt32LE(dirent + 16);
      const end = dirent + SizeOf.fuse_dirent + length;
      assert.ok(length > 0 && end <= bytes.length, 'an entry ends beyond the answer');
      const name = bytes.toString('utf8', dirent + SizeOf.fuse_dirent, end);
      assert.ok(!name.includes('/') && !name.includes('\0'), name);
      const dots = name === '.' || name === '..';
      if (plus && dots) assert.equal(parseEntry(bytes.subarray(at)).nodeId, 0);
      entries.push({
        name,
        ino: Number(bytes.readBigUInt64LE(dirent)),
        next: Number(bytes.readBigUInt64LE(dirent + 8)),
        type: bytes.readUInt32LE(dirent + 20),
        ...(plus ? { entry: this.#takeEntry(bytes.subarray(at)) } : {}),
      });
      at = (end + 7) & ~7;
    }
    return entries;
  }

  /** All names of a folder. */
  async list(nodeId: number, plus: boolean, size = 4096): Promise<LoopbackDirent[]> {
    const opened = await this.opendir(nodeId);
    assert.ok('handle' in opened);
    const all: LoopbackDirent[] = [];
    for (let offset = 0; ; offset = all.at(-1)!.next) {
      const some = await this.readdir(nodeId, opened.handle, offset, size, plus);
      if (some.length === 0) break;
      all.push(...some);
    }
    assert.equal(await this.releasedir(nodeId, opened.handle), 0);
    return all;
  }

  /** The inode of a path, looked up name by name; an errno below 0. */
  async walk(path: string): Promise<number> {
    let nodeId = FUSE_ROOT_ID;
    for (const name of path.split('/')) {
      const entry = await this.lookup(nodeId, name);
      if (typeof entry === 'number') return -entry;
      if (entry.nodeId === 0) return -2;
      nodeId = entry.nodeId;
    }
    return nodeId;
  }
}

/** Bytes of a struct that begins with these u32. */
export function struct(length: number, words: readonly number[]): Buffer {
  const bytes = Buffer.alloc(length);
  for (const [k, word] of words.entries()) bytes.writeUInt32LE(word >>> 0, k * 4);
  return bytes;
}

export function terminated(name: string | Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(name), Buffer.alloc(1)]);
}

function readIn(handle: number, offset: number, size: number): Buffer {
  const body = Buffer.alloc(40);
  body.writeBigUInt64LE(BigInt(handle), 0);
  body.writeBigUInt64LE(BigInt(offset), 8);
  body.writeUInt32LE(size, 16);
  return body;
}

function parseEntry(body: Uint8Array): LoopbackEntry {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  return {
    nodeId: Number(bytes.readBigUInt64LE(0)),
    validS: Number(bytes.readBigUInt64LE(16)),
    attributes: parseAttr(bytes, 40),
  };
}

function parseAttr(body: Uint8Array, at: number): LoopbackAttributes {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  return {
    ino: Number(bytes.readBigUInt64LE(at)),
    length: Number(bytes.readBigUInt64LE(at + 8)),
    modifiedMs: Number(bytes.readBigInt64LE(at + 32)) * 1000 + bytes.readUInt32LE(at + 52) / 1e6,
    mode: bytes.readUInt32LE(at + 60),
    links: bytes.readUInt32LE(at + 64),
  };
}
