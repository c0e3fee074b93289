/** Open files and folders by the number that the kernel calls them by. Numbers are never used again. */
import type { Served } from './content.ts';
import type { FileNode, FolderNode, Node } from './nodes.ts';

export interface FileHandle {
  readonly id: number;
  readonly node: FileNode;
  readonly served: Served;
  /** Counted among the inode's handles with the backing file. */
  readonly backed: boolean;
}

export interface FolderHandle {
  readonly id: number;
  readonly node: FolderNode;
  /** The folder as it was when it was opened, so that a listing is of one generation. */
  readonly entries: readonly Node[];
}

export class HandleTable {
  readonly files = new Map<number, FileHandle>();
  readonly folders = new Map<number, FolderHandle>();
  #next = 1;

  openFile(node: FileNode, served: Served, backed: boolean): FileHandle {
    const handle = { id: this.#next++, node, served, backed };
    this.files.set(handle.id, handle);
    node.handles++;
    node.served[backed ? 'passthrough' : served]++;
    return handle;
  }

  /** The handle that was closed. */
  closeFile(id: number): FileHandle | undefined {
    const handle = this.files.get(id);
    if (handle === undefined) return undefined;
    this.files.delete(id);
    handle.node.handles--;
    handle.node.served[handle.backed ? 'passthrough' : handle.served]--;
    return handle;
  }

  openFolder(node: FolderNode): FolderHandle {
    const handle = { id: this.#next++, node, entries: [...node.children.values()] };
    this.folders.set(handle.id, handle);
    node.handles++;
    return handle;
  }

  closeFolder(id: number): FolderHandle | undefined {
    const handle = this.folders.get(id);
    if (handle === undefined) return undefined;
    this.folders.delete(id);
    handle.node.handles--;
    return handle;
  }
}
