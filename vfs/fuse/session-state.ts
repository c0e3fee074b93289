/** What the parts of a session share: tables, replies, bounds, counters. No behaviour of its own but the smallest. */
import { MountError } from '../errors.ts';
import type { BackingFiles } from './binding.ts';
import type { ContentFactory, FileContent, Served } from './content.ts';
import type { HandleTable } from './handles.ts';
import type { FileNode, NodeTable } from './nodes.ts';
import type { PendingRequests } from './pending.ts';
import { PendingRequest } from './pending.ts';
import type { Replies } from './replies.ts';
import type { RequestHeader } from './request.ts';

/** Totals since the session began. */
export interface SessionCounters {
  /** By operation, as request.ts names them. */
  readonly requests: Map<string, number>;
  /** Bytes that reads were answered with. */
  readBytes: number;
  /** Reads answered with bytes, by how their handle is served. */
  readonly reads: Record<Served, number>;
  /** Opens by how they are served. */
  readonly opens: Record<Served, number>;
  /** Messages of the kernel that did not parse. */
  malformed: number;
  /** Answers of contents that broke their contract, each answered with EIO. */
  broken: number;
}

export interface SessionState {
  readonly nodes: NodeTable;
  readonly handles: HandleTable;
  readonly pending: PendingRequests;
  readonly replies: Replies;
  readonly contents: ContentFactory;
  readonly counters: SessionCounters;
  /** Seconds that the kernel may keep what it is told. */
  readonly validS: number;
  /** For passthrough; gone when the kernel does not offer it or has refused it once. */
  backing: BackingFiles | undefined;
  readonly answerError: (unique: number, error: unknown) => void;
  /** Tells people of what should not happen. */
  readonly problem: (text: string) => void;
}

/** Made at the first use. Throws what the factory throws. */
export function contentOf(state: SessionState, node: FileNode): FileContent {
  node.content ??= state.contents(node.file);
  return node.content;
}

/** Asks a content something on behalf of a request; `run` settles it. */
export function ask(
  state: SessionState,
  header: RequestHeader,
  node: FileNode,
  handle: number,
  run: (request: PendingRequest) => void,
): void {
  const { unique, pid } = header;
  const fail = (error: unknown) => state.answerError(unique, error);
  state.pending.start(new PendingRequest(unique, node, handle, pid, performance.now(), run, fail));
}

/**
 * Calls back once the length of the file is known, at once where it is; otherwise the answer is the error, and
 * `whenKnown` is not called.
 */
export function measure(state: SessionState, header: RequestHeader, node: FileNode, whenKnown: () => void): void {
  if (node.length !== undefined) {
    whenKnown();
    return;
  }
  ask(state, header, node, 0, (request) => {
    const content = contentOf(state, node);
    if (content.measure === undefined) throw new MountError('TREE', `${node.file.path} has no length`);
    content.measure(request, (error, length) => {
      if (!state.pending.settle(request)) return;
      const known = error === undefined || error === null;
      if (!known) state.answerError(header.unique, error);
      else if (length === undefined || !Number.isSafeInteger(length) || length < 0) {
        state.counters.broken++;
        state.problem(`${node.file.path}: measured as ${length} bytes`);
        state.answerError(header.unique, new MountError('TREE', 'no length'));
      } else {
        if (node.length === undefined) state.nodes.measured(node, length);
        whenKnown();
      }
      state.pending.finished();
    });
  });
}

/** Calls a content's method that has no answer; its errors are told, not passed on. */
export function tell(state: SessionState, node: FileNode, call: (content: FileContent) => void): void {
  if (node.content === undefined) return;
  try {
    call(node.content);
  } catch (error) {
    state.problem(`${node.file.path}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
