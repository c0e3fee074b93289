/** OPEN, READ and RELEASE of files: what a content says becomes what the kernel is told. */

import { Errno } from '../errno.ts';
import { MountError } from '../errors.ts';
import type { Opening } from './content.ts';
import type { FileHandle } from './handles.ts';
import { READ_REQUEST_BYTES_MAX } from './limits.ts';
import type { FileNode } from './nodes.ts';
import { buildOpenOut } from './reply.ts';
import type { RequestHeader } from './request.ts';
import type { ServingChoice } from './serving.ts';
import { chooseServing } from './serving.ts';
import type { SessionState } from './session-state.ts';
import { ask, contentOf, tell } from './session-state.ts';

const CACHED: Opening = { serve: 'cached' };
const NOTHING = new Uint8Array(0);

/** O_ACCMODE, O_TRUNC: what an open must not have in a file system that nobody writes. */
const WRITING_FLAGS = 0o3 | 0o1000;

export function openFile(state: SessionState, header: RequestHeader, flags: number): void {
  const node = state.nodes.get(header.nodeId);
  if (node === undefined || node.stale) return void state.replies.status(header.unique, Errno.ESTALE);
  if (node.folder) return void state.replies.status(header.unique, Errno.EISDIR);
  if (flags & WRITING_FLAGS) return void state.replies.status(header.unique, Errno.EROFS);
  ask(state, header, node, 0, (request) => {
    const content = contentOf(state, node);
    const done = (error: unknown, opening: Opening = CACHED): void => {
      if (!state.pending.settle(request)) return;
      if (error === undefined || error === null) answerOpen(state, header, node, opening);
      else state.answerError(header.unique, error);
      state.pending.finished();
    };
    if (content.open === undefined) done(undefined);
    else content.open(request, done);
  });
}

function answerOpen(state: SessionState, header: RequestHeader, node: FileNode, opening: Opening): void {
  const { served, flags, backed } = choose(state, node, opening);
  const handle = state.handles.openFile(node, served, backed);
  const sent = state.replies.body(header.unique, buildOpenOut(handle.id, flags, backed ? node.backingId : 0));
  if (sent !== 'taken') {
    // who opened was interrupted: there is no handle that would ever be released
    dropHandle(state, handle);
    return;
  }
  state.counters.opens[served]++;
  tell(state, node, (content) => content.opened?.(handle.id, served));
}

function choose(state: SessionState, node: FileNode, opening: Opening): ServingChoice {
  const choice = chooseServing(opening, node.served, state.backing !== undefined);
  if (!choice.backed || node.served.passthrough > 0 || opening.serve !== 'passthrough') return choice;
  try {
    node.backingId = state.backing!.open(opening.backing);
    return choice;
  } catch (error) {
    if (error instanceof MountError && error.code === 'NOT_PERMITTED') state.backing = undefined;
    state.problem(`no passthrough: ${error instanceof Error ? error.message : String(error)}`);
    return chooseServing(opening, node.served, false);
  }
}

export function readFile(
  state: SessionState,
  header: RequestHeader,
  asked: { readonly handle: number; readonly offset: number; readonly size: number },
): void {
  const { unique } = header;
  const handle = state.handles.files.get(asked.handle);
  if (handle === undefined) return void state.replies.status(unique, Errno.EBADF);
  const { node } = handle;
  if (node.stale) return void state.replies.status(unique, Errno.ESTALE);
  // a short answer would mean the end of the file
  if (asked.size > READ_REQUEST_BYTES_MAX) return void state.replies.status(unique, Errno.EINVAL);
  const bytes = Math.min(asked.size, (node.length ?? 0) - asked.offset);
  if (bytes <= 0) return void state.replies.body(unique, NOTHING);
  ask(state, header, node, asked.handle, (request) => {
    contentOf(state, node).read(asked.offset, bytes, request, (error, views = []) => {
      if (!state.pending.settle(request)) return false;
      let taken = false;
      if (error !== undefined && error !== null) state.answerError(unique, error);
      else if (sumOf(views) !== bytes) {
        state.counters.broken++;
        state.problem(`${node.file.path}: ${sumOf(views)} bytes for a read of ${bytes} at ${asked.offset}`);
        state.replies.status(unique, Errno.EIO);
      } else {
        taken = state.replies.views(unique, views, bytes) === 'taken';
        if (taken) {
          state.counters.reads[handle.served]++;
          state.counters.readBytes += bytes;
        }
      }
      state.pending.finished();
      return taken;
    });
  });
}

function sumOf(views: readonly Uint8Array[]): number {
  let bytes = 0;
  for (const view of views) bytes += view.byteLength;
  return bytes;
}

export function releaseFile(state: SessionState, header: RequestHeader, id: number): void {
  const handle = state.handles.files.get(id);
  if (handle === undefined) return void state.replies.status(header.unique, Errno.EBADF);
  const reason = new MountError('INTERRUPTED', 'the handle was closed');
  state.pending.abortWhere((request) => request.handle === id, reason);
  tell(state, handle.node, (content) => content.released?.(id));
  dropHandle(state, handle);
  state.replies.status(header.unique, 0);
}

function dropHandle(state: SessionState, handle: FileHandle): void {
  const { node } = handle;
  state.handles.closeFile(handle.id);
  if (node.backingId !== 0 && node.served.passthrough === 0) {
    // the backing file may go as soon as nobody is served from it
    state.backing?.close(node.backingId);
    node.backingId = 0;
  }
  state.nodes.dropUnused(node);
}
