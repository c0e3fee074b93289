/**
 * Inodes: what the kernel knows of the tree, by number. A folder keeps its number as long as it exists, a file as long
 * as its version (path, etag and length) does: a changed file is another inode, so that nothing cached of the old one
 * can pass for the new one. Numbers are never used again. A node lives while it is in the tree, looked up (the kernel
 * gives each lookup back by FORGET) or open; files are made with their folder, so numbers do not depend on who looks.
 */
import type { FileContent, FileTree, TreeFile } from './content.ts';
import type { LeftOut, TreeFolder } from './file-tree.ts';
import { buildFolders, isFolder } from './file-tree.ts';
import { FUSE_ROOT_ID } from './protocol.ts';
import type { NodeAttributes } from './reply.ts';

interface NodeBase {
  readonly id: number;
  readonly name: string;
  readonly parent: FolderNode | undefined;
  /** Lookups that the kernel has not given back. */
  lookups: number;
  /** Open handles. */
  handles: number;
  /** No longer in the tree: opens and reads answer ESTALE. */
  stale: boolean;
}

export interface FileNode extends NodeBase {
  readonly folder: false;
  /** As the current generation lists it. */
  file: TreeFile;
  /** Bytes; undefined until the content has measured it. */
  length: number | undefined;
  /** Made at the first use. */
  content: FileContent | undefined;
  /** Open handles by how they are served. */
  readonly served: { cached: number; direct: number; passthrough: number };
  /** The kernel's number for the backing file, while a handle is served from it. */
  backingId: number;
}

export interface FolderNode extends NodeBase {
  readonly folder: true;
  children: Map<string, Node>;
  folders: number;
  modifiedMs: number;
}

export type Node = FileNode | FolderNode;

/** What a new generation changed, as far as the kernel may have kept something of the old one. */
export interface TreeChange {
  readonly generation: string;
  readonly added: number;
  readonly removed: number;
  /** Files with other bytes than before under the same path. */
  readonly changed: number;
  readonly leftOut: readonly LeftOut[];
}

interface Replaced {
  readonly change: TreeChange;
  /** Names whose entries are no longer right. */
  readonly entries: ReadonlyArray<{ readonly parent: number; readonly name: string }>;
  /** Folders whose content is not what it was. */
  readonly folders: readonly number[];
  readonly staleFiles: readonly FileNode[];
}

export class NodeTable {
  readonly root: FolderNode;
  generation = '';
  /** Of the tree: files, and bytes of those whose length is known. */
  files = 0;
  bytes = 0;
  readonly #uid: number;
  readonly #gid: number;
  readonly #nodes = new Map<number, Node>();
  #nextId = FUSE_ROOT_ID + 1;

  constructor(uid: number, gid: number) {
    this.#uid = uid;
    this.#gid = gid;
    this.root = this.#newFolder(FUSE_ROOT_ID, '', undefined);
  }

  /** Nodes that exist, those that only the kernel still knows too. */
  get size(): number {
    return this.#nodes.size;
  }

  get(id: number): Node | undefined {
    return this.#nodes.get(id);
  }

  all(): IterableIterator<Node> {
    return this.#nodes.values();
  }

  attributes(node: Node): NodeAttributes {
    return {
      ino: node.id,
      folder: node.folder,
      length: node.folder ? 0 : (node.length ?? 0),
      modifiedMs: node.folder ? node.modifiedMs : node.file.modifiedMs,
      uid: this.#uid,
      gid: this.#gid,
      links: node.folder ? 2 + node.folders : 1,
    };
  }

  measured(node: FileNode, length: number): void {
    node.length = length;
    if (!node.stale) this.bytes += length;
  }

  forget(id: number, lookups: number): void {
    const node = this.#nodes.get(id);
    if (node === undefined || node === this.root) return;
    node.lookups = Math.max(0, node.lookups - lookups);
    this.dropUnused(node);
  }

  /** Lets go of a node that nobody can name any more. */
  dropUnused(node: Node): void {
    if (node.stale && node.lookups === 0 && node.handles === 0) this.#nodes.delete(node.id);
  }

  /** Makes `tree` the current generation. */
  replace(tree: FileTree): Replaced {
    const { root, leftOut } = buildFolders(tree);
    const merge = new Merge(this);
    this.files = 0;
    this.bytes = 0;
    merge.folder(this.root, root);
    this.generation = tree.generation;
    const { added, removed, changed, entries, folders, staleFiles } = merge;
    return {
      change: { generation: tree.generation, added, removed, changed, leftOut },
      entries,
      folders,
      staleFiles,
    };
  }

  newNode(name: string, parent: FolderNode, entry: TreeFolder | TreeFile): Node {
    if (isFolder(entry)) return this.#newFolder(this.#nextId++, name, parent);
    const node: FileNode = {
      folder: false,
      id: this.#nextId++,
      name,
      parent,
      lookups: 0,
      handles: 0,
      stale: false,
      file: entry,
      length: entry.length,
      content: undefined,
      served: { cached: 0, direct: 0, passthrough: 0 },
      backingId: 0,
    };
    this.#nodes.set(node.id, node);
    return node;
  }

  #newFolder(id: number, name: string, parent: FolderNode | undefined): FolderNode {
    const node: FolderNode = {
      folder: true,
      id,
      name,
      parent,
      lookups: 0,
      handles: 0,
      stale: false,
      children: new Map(),
      folders: 0,
      modifiedMs: 0,
    };
    this.#nodes.set(id, node);
    return node;
  }
}

/** Brings the nodes of one generation to the next. Recursion is bounded by TREE_DEPTH_MAX. */
class Merge {
  added = 0;
  removed = 0;
  changed = 0;
  readonly entries: { parent: number; name: string }[] = [];
  readonly folders: number[] = [];
  readonly staleFiles: FileNode[] = [];
  readonly #table: NodeTable;

  constructor(table: NodeTable) {
    this.#table = table;
  }

  folder(node: FolderNode, next: TreeFolder): void {
    const children = new Map<string, Node>();
    const before = node.children;
    let different = false;
    node.folders = 0;
    node.modifiedMs = 0;
    for (const [name, entry] of next.entries) {
      const old = before.get(name);
      const kept = old !== undefined && isSame(old, entry);
      const child = kept ? old : this.#table.newNode(name, node, entry);
      children.set(name, child);
      if (!kept) {
        different = true;
        this.#entryChanged(node, name);
        if (old !== undefined) this.#replaced(old, child);
        else if (!child.folder) this.added++;
      }
      this.#update(node, child, entry);
    }
    for (const [name, old] of before) {
      if (next.entries.has(name)) continue;
      different = true;
      this.#entryChanged(node, name);
      this.#removed(old);
      this.#retire(old);
    }
    node.children = children;
    if (different && this.#isKnown(node)) this.folders.push(node.id);
  }

  #update(parent: FolderNode, child: Node, entry: TreeFolder | TreeFile): void {
    if (child.folder) {
      parent.folders++;
      this.folder(child, entry as TreeFolder);
      parent.modifiedMs = Math.max(parent.modifiedMs, child.modifiedMs);
      return;
    }
    child.file = entry as TreeFile;
    child.length ??= child.file.length;
    this.#table.files++;
    this.#table.bytes += child.length ?? 0;
    parent.modifiedMs = Math.max(parent.modifiedMs, child.file.modifiedMs);
  }

  #replaced(old: Node, by: Node): void {
    if (!old.folder && !by.folder) this.changed++;
    else {
      this.#removed(old);
      if (!by.folder) this.added++;
    }
    this.#retire(old);
  }

  #removed(node: Node): void {
    if (node.folder) for (const child of node.children.values()) this.#removed(child);
    else this.removed++;
  }

  /** The node and all below it are no longer in the tree. */
  #retire(node: Node): void {
    node.stale = true;
    if (node.folder) for (const child of node.children.values()) this.#retire(child);
    else this.staleFiles.push(node);
    this.#table.dropUnused(node);
  }

  /** Whether the kernel may have entries of this folder. */
  #isKnown(node: FolderNode): boolean {
    return node.parent === undefined || node.lookups > 0;
  }

  #entryChanged(parent: FolderNode, name: string): void {
    if (this.#isKnown(parent)) this.entries.push({ parent: parent.id, name });
  }
}

/** Whether a node goes on as it is for what the next generation has under its name. */
function isSame(node: Node, entry: TreeFolder | TreeFile): boolean {
  if (node.folder || isFolder(entry)) return node.folder === isFolder(entry);
  const lengthHolds = entry.length === undefined || node.length === undefined || entry.length === node.length;
  return node.file.etag === entry.etag && lengthHolds;
}
