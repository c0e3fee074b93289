/**
 * A FUSE session: answers a kernel's requests (binding.ts) from a tree of files and their contents (content.ts).
 * Read-only: whatever would write gets EROFS. Never waits itself: a request is answered in the call that brought it
 * or when its content calls back, and each is answered exactly once. Runs on any thread that has an event loop.
 *
 * Nothing cached is ever invalidated: a changed file is another inode, and OPEN, GETATTR and READ of the old one answer
 * ESTALE, on which the kernel looks the name up again. Entries and attributes of folders are forgotten by notifications,
 * which another thread must write (`notify`): they wait for locks that a request of ours may hold.
 */
import { Errno, errnoOf } from '../errno.ts';
import { MountError } from '../errors.ts';
import type { FuseBinding } from './binding.ts';
import type { ContentFactory, FileTree } from './content.ts';
import { isDying } from './dying.ts';
import { openFile, readFile, releaseFile } from './file-requests.ts';
import { HandleTable } from './handles.ts';
import type { KernelOffer } from './init.ts';
import { answerInit } from './init.ts';
import { ANSWER_MS, VALID_S } from './limits.ts';
import * as nodeRequests from './node-requests.ts';
import type { TreeChange } from './nodes.ts';
import { NodeTable } from './nodes.ts';
import { PendingRequests } from './pending.ts';
import { Replies } from './replies.ts';
import { buildInvalAttributes, buildInvalEntry } from './reply.ts';
import type { FuseRequest } from './request.ts';
import { parseRequest } from './request.ts';
import type { SessionCounters, SessionState } from './session-state.ts';
import { tell } from './session-state.ts';

export interface SessionOptions {
  readonly binding: FuseBinding;
  readonly tree: FileTree;
  readonly contents: ContentFactory;
  /**
   * Writes messages to the kernel from another thread than this one (InvalidationThread). Without it the kernel keeps
   * nothing for more than a second.
   */
  readonly notify?: (messages: readonly Uint8Array[]) => void;
  /** Owner of all files; this process's user unless given. */
  readonly uid?: number;
  readonly gid?: number;
  /** Milliseconds until a request that its content does not answer gets ETIMEDOUT. */
  readonly answerMs?: number;
  /** Told of what should not happen: contents that break their contract, messages that do not parse. */
  readonly onProblem?: (text: string) => void;
  /** For tests: whether a process can use no answer any more. */
  readonly isDying?: (pid: number) => boolean;
}

/** Figures of the moment, besides the counters. */
export interface SessionActivity {
  readonly pending: number;
  readonly pendingMost: number;
  readonly timeouts: number;
  readonly interrupts: number;
  readonly refused: number;
  readonly unwanted: number;
  readonly errors: ReadonlyMap<number, number>;
  readonly handles: number;
  readonly nodes: number;
}

export class FuseSession {
  /** The kernel has begun: what it offers. Rejects with MountError VERSION, or STOPPED when it ends before. */
  readonly ready: Promise<KernelOffer>;
  /** The kernel has let go; nothing is read any more, contents are closed. Never rejects. */
  readonly ended: Promise<Error | undefined>;
  readonly counters: SessionCounters;
  readonly #state: SessionState;
  readonly #binding: FuseBinding;
  readonly #notify: ((messages: readonly Uint8Array[]) => void) | undefined;
  readonly #answerMs: number;
  readonly #ready = Promise.withResolvers<KernelOffer>();
  readonly #ended = Promise.withResolvers<Error | undefined>();
  #stopped = false;
  #over = false;

  /** Begins to answer. Throws MountError TREE. */
  constructor(options: SessionOptions) {
    this.#binding = options.binding;
    this.#notify = options.notify;
    this.#answerMs = options.answerMs ?? ANSWER_MS;
    this.ready = this.#ready.promise;
    // whoever wants to know awaits it; nobody need
    this.ready.catch(() => undefined);
    this.ended = this.#ended.promise;
    this.counters = {
      requests: new Map(),
      readBytes: 0,
      reads: { cached: 0, direct: 0, passthrough: 0 },
      opens: { cached: 0, direct: 0, passthrough: 0 },
      malformed: 0,
      broken: 0,
    };
    this.#state = this.#newState(options);
    this.#state.nodes.replace(options.tree);
    this.#binding.start({
      request: (bytes) => this.#receive(bytes),
      ended: (reason) => this.#end(reason),
    });
  }

  #newState(options: SessionOptions): SessionState {
    const replies = new Replies(this.#binding);
    return {
      nodes: new NodeTable(options.uid ?? process.getuid?.() ?? 0, options.gid ?? process.getgid?.() ?? 0),
      handles: new HandleTable(),
      pending: new PendingRequests({ answerMs: this.#answerMs, isDying: options.isDying ?? isDying }),
      replies,
      contents: options.contents,
      counters: this.counters,
      validS: options.notify === undefined ? 1 : VALID_S,
      backing: undefined,
      answerError: (unique, error) => void replies.status(unique, errnoOf(error)),
      problem: (text) => options.onProblem?.(text),
    };
  }

  get activity(): SessionActivity {
    const { pending, replies, handles, nodes } = this.#state;
    return {
      pending: pending.size,
      pendingMost: pending.most,
      timeouts: pending.timeouts,
      interrupts: pending.interrupts,
      refused: pending.refused,
      unwanted: replies.unwanted,
      errors: replies.errors,
      handles: handles.files.size + handles.folders.size,
      nodes: nodes.size,
    };
  }

  /** The inode of a path in the current tree, for notifyStore; undefined where the kernel does not know it. */
  nodeIdOf(path: string): number | undefined {
    let node = this.#state.nodes.get(1);
    for (const name of path.split('/')) node = node?.folder ? node.children.get(name) : undefined;
    return node !== undefined && node.lookups > 0 ? node.id : undefined;
  }

  /**
   * Replaces what is mounted, whole. Files whose path and etag are as before go on: inode, handles, content. Pending and
   * later reads of the others answer ESTALE, and new lookups see the new files. Throws MountError TREE.
   */
  replaceTree(tree: FileTree): TreeChange {
    if (this.#over) throw new MountError('STOPPED', 'the session has ended');
    const { nodes, handles, pending } = this.#state;
    const { change, entries, folders, staleFiles } = nodes.replace(tree);
    const stale = new Set(staleFiles);
    pending.abortWhere(({ node }) => stale.has(node), new MountError('STALE', 'the file was replaced'));
    for (const handle of handles.files.values()) {
      if (stale.has(handle.node)) tell(this.#state, handle.node, (content) => content.released?.(handle.id));
    }
    for (const node of staleFiles) {
      tell(this.#state, node, (content) => content.close?.());
      node.content = undefined;
    }
    const messages = [
      ...entries.map(({ parent, name }) => buildInvalEntry(parent, name)),
      ...folders.map(buildInvalAttributes),
    ];
    if (messages.length > 0) this.#notify?.(messages);
    return change;
  }

  /** Answers everything that waits, and all that still comes, with ENOTCONN. The kernel is not told; unmount it. */
  stop(): void {
    this.#stopped = true;
    this.#state.pending.abortWhere(() => true, new MountError('STOPPED', 'the mount ends'));
  }

  #end(reason: Error | undefined): void {
    if (this.#over) return;
    this.stop();
    this.#over = true;
    for (const node of this.#state.nodes.all()) {
      if (!node.folder) tell(this.#state, node, (content) => content.close?.());
    }
    this.#ready.reject(reason ?? new MountError('STOPPED', 'the kernel let go before it began'));
    this.#ended.resolve(reason);
  }

  #receive(bytes: Uint8Array): void {
    let request: FuseRequest;
    try {
      request = parseRequest(bytes);
    } catch (error) {
      this.counters.malformed++;
      this.#state.problem(error instanceof Error ? error.message : String(error));
      const { unique } = error as MountError;
      if (unique !== undefined && unique !== 0) this.#state.replies.status(unique, errnoOf(error));
      return;
    }
    const { op } = request.body;
    this.counters.requests.set(op, (this.counters.requests.get(op) ?? 0) + 1);
    try {
      this.#dispatch(request);
    } catch (error) {
      // a bug of ours costs one request, not the mount
      this.#state.problem(`${op}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      this.#state.replies.status(request.header.unique, Errno.EIO);
    }
  }

  #dispatch({ header, body }: FuseRequest): void {
    const state = this.#state;
    const { unique } = header;
    switch (body.op) {
      case 'FORGET':
        for (const { nodeId, lookups } of body.forgets) state.nodes.forget(nodeId, lookups);
        return;
      case 'INTERRUPT':
        state.pending.interrupt(body.target);
        return;
      case 'RELEASE':
        releaseFile(state, header, body.handle);
        return;
      case 'RELEASEDIR':
        nodeRequests.releaseFolder(state, header, body.handle);
        return;
      case 'DESTROY':
        return void state.replies.status(unique, 0);
      case 'NOTIFY_REPLY':
        return;
    }
    if (this.#stopped) return void state.replies.status(unique, Errno.ENOTCONN);
    switch (body.op) {
      case 'READ':
        readFile(state, header, body);
        return;
      case 'LOOKUP':
        nodeRequests.lookUp(state, header, body.name);
        return;
      case 'GETATTR':
      case 'STATX':
        nodeRequests.getAttributes(state, header, body.op === 'STATX');
        return;
      case 'OPEN':
        openFile(state, header, body.flags);
        return;
      case 'OPENDIR':
        nodeRequests.openFolder(state, header);
        return;
      case 'READDIR':
      case 'READDIRPLUS':
        nodeRequests.readFolder(state, header, body, body.op === 'READDIRPLUS');
        return;
      case 'STATFS':
        nodeRequests.statFileSystem(state, header);
        return;
      case 'GETXATTR':
        nodeRequests.getXattr(state, header, body.name, body.size);
        return;
      case 'LISTXATTR':
        nodeRequests.listXattr(state, header, body.size);
        return;
      case 'INIT':
        this.#init(unique, body);
        return;
      case 'ACCESS':
        return void state.replies.status(unique, body.mask & 2 ? Errno.EROFS : 0);
      case 'READLINK':
        return void state.replies.status(unique, Errno.EINVAL);
      case 'IOCTL':
        return void state.replies.status(unique, Errno.ENOTTY);
      case 'WRITE':
        return void state.replies.status(unique, Errno.EROFS);
      case 'UNKNOWN':
        // FLUSH, FSYNC, LSEEK, POLL and locks too: the kernel then does by itself what is right for unchanging files
        return void state.replies.status(unique, Errno.ENOSYS);
    }
  }

  #init(unique: number, body: Parameters<typeof answerInit>[0]): void {
    const { reply, offer } = answerInit(body, this.#answerMs);
    if (reply === undefined) {
      this.#state.replies.status(unique, Errno.EPROTO);
      const theirs = `${body.major}.${body.minor}`;
      this.#ready.reject(new MountError('VERSION', `the kernel speaks FUSE ${theirs}; Linux 4.20 or newer is needed`));
      return;
    }
    this.#state.replies.body(unique, reply);
    if (offer === undefined) return;
    if (offer.passthrough) this.#state.backing = this.#binding.backing;
    this.#ready.resolve(offer);
  }
}
