/** LOOKUP, GETATTR, STATX, folders, extended attributes, STATFS: what is known without reading a file. */
import { Errno } from '../errno.ts';
import { READ_REQUEST_BYTES_MAX } from './limits.ts';
import type { FileNode, Node } from './nodes.ts';
import {
  buildAttrOut,
  buildEntryOut,
  buildNegativeEntry,
  buildOpenOut,
  buildStatfsOut,
  buildStatxOut,
  buildXattrSize,
  DirectoryBuffer,
} from './reply.ts';
import type { RequestHeader } from './request.ts';
import type { SessionState } from './session-state.ts';
import { measure } from './session-state.ts';

export function lookUp(state: SessionState, header: RequestHeader, name: string | undefined): void {
  const { unique } = header;
  const parent = state.nodes.get(header.nodeId);
  if (parent === undefined || parent.stale) return void state.replies.status(unique, Errno.ESTALE);
  if (!parent.folder) return void state.replies.status(unique, Errno.ENOTDIR);
  const node = name === undefined ? undefined : parent.children.get(name);
  if (node === undefined) return void state.replies.body(unique, buildNegativeEntry(state.validS));
  const answer = () => {
    node.lookups++;
    const sent = state.replies.body(unique, buildEntryOut(state.nodes.attributes(node), state.validS));
    // an answer that is not taken is no lookup
    if (sent !== 'taken') state.nodes.forget(node.id, 1);
  };
  if (node.folder) answer();
  else measure(state, header, node, answer);
}

export function getAttributes(state: SessionState, header: RequestHeader, statx: boolean): void {
  const { unique } = header;
  const node = state.nodes.get(header.nodeId);
  if (node === undefined || node.stale) return void state.replies.status(unique, Errno.ESTALE);
  const answer = () => {
    const attributes = state.nodes.attributes(node);
    const out = statx ? buildStatxOut(attributes, state.validS) : buildAttrOut(attributes, state.validS);
    state.replies.body(unique, out);
  };
  if (node.folder) answer();
  else measure(state, header, node, answer);
}

export function openFolder(state: SessionState, header: RequestHeader): void {
  const { unique } = header;
  const node = state.nodes.get(header.nodeId);
  if (node === undefined || node.stale) return void state.replies.status(unique, Errno.ESTALE);
  if (!node.folder) return void state.replies.status(unique, Errno.ENOTDIR);
  const handle = state.handles.openFolder(node);
  if (state.replies.body(unique, buildOpenOut(handle.id, 0)) !== 'taken') state.handles.closeFolder(handle.id);
}

export function releaseFolder(state: SessionState, header: RequestHeader, id: number): void {
  const handle = state.handles.closeFolder(id);
  if (handle === undefined) return void state.replies.status(header.unique, Errno.EBADF);
  state.nodes.dropUnused(handle.node);
  state.replies.status(header.unique, 0);
}

/** Entry n of a listing is ".", "..", then the folder's; reading goes on at n + 1. */
export function readFolder(
  state: SessionState,
  header: RequestHeader,
  asked: { readonly handle: number; readonly offset: number; readonly size: number },
  plus: boolean,
): void {
  const { unique } = header;
  const handle = state.handles.folders.get(asked.handle);
  if (handle === undefined) return void state.replies.status(unique, Errno.EBADF);
  if (asked.size > READ_REQUEST_BYTES_MAX) return void state.replies.status(unique, Errno.EINVAL);
  const { node, entries } = handle;
  const buffer = new DirectoryBuffer(asked.size, plus);
  const lookedUp: Node[] = [];
  for (let at = asked.offset; at < entries.length + 2; at++) {
    const next = at + 1;
    if (at < 2) {
      const ino = at === 0 ? node.id : (node.parent ?? node).id;
      if (!buffer.add({ name: at === 0 ? '.' : '..', ino, folder: true }, next)) break;
      continue;
    }
    const entry = entries[at - 2]!;
    const { name, id: ino, folder } = entry;
    // a file that has yet to be measured is looked up when somebody wants to know more than its name
    const isLookup = plus && !entry.stale && (entry.folder || entry.length !== undefined);
    const attributes = isLookup ? state.nodes.attributes(entry) : undefined;
    if (!buffer.add({ name, ino, folder }, next, attributes, state.validS)) break;
    if (isLookup) lookedUp.push(entry);
  }
  for (const entry of lookedUp) entry.lookups++;
  if (state.replies.body(unique, buffer.bytes) === 'taken') return;
  for (const entry of lookedUp) state.nodes.forget(entry.id, 1);
}

export function statFileSystem(state: SessionState, header: RequestHeader): void {
  state.replies.body(header.unique, buildStatfsOut(state.nodes.bytes, state.nodes.files));
}

function attributesOf(state: SessionState, node: FileNode): Readonly<Record<string, string>> {
  return {
    'user.qanat.etag': node.file.etag,
    'user.qanat.generation': state.nodes.generation,
    'user.qanat.path': node.file.path,
    ...node.file.attributes,
  };
}

export function getXattr(state: SessionState, header: RequestHeader, name: string | undefined, size: number): void {
  const { unique } = header;
  const node = state.nodes.get(header.nodeId);
  if (node === undefined || node.stale) return void state.replies.status(unique, Errno.ESTALE);
  const all = node.folder ? { 'user.qanat.generation': state.nodes.generation } : attributesOf(state, node);
  const value = name === undefined || !Object.hasOwn(all, name) ? undefined : all[name as keyof typeof all];
  if (value === undefined) return void state.replies.status(unique, Errno.ENODATA);
  answerSized(state, unique, Buffer.from(value), size);
}

export function listXattr(state: SessionState, header: RequestHeader, size: number): void {
  const node = state.nodes.get(header.nodeId);
  if (node === undefined || node.stale) return void state.replies.status(header.unique, Errno.ESTALE);
  const names = node.folder ? ['user.qanat.generation'] : Object.keys(attributesOf(state, node));
  answerSized(state, header.unique, Buffer.from(names.map((name) => `${name}\0`).join('')), size);
}

/** A size of 0 asks how much there is. */
function answerSized(state: SessionState, unique: number, value: Uint8Array, size: number): void {
  if (size === 0) state.replies.body(unique, buildXattrSize(value.byteLength));
  else if (size < value.byteLength) state.replies.status(unique, Errno.ERANGE);
  else state.replies.body(unique, value);
}
