/**
 * A list of paths as folders within folders, pure. Sources name their files as they like (an object store knows no
 * folders): what Linux can't name, or what is both a file and a folder, is left out and told, never renamed. A folder
 * comes before a file of the same name, since it holds more.
 */
import { MountError } from '../errors.ts';
import type { FileTree, TreeFile } from './content.ts';
import { ENTRY_NAME_BYTES_MAX, TREE_DEPTH_MAX, TREE_FILES_MAX } from './limits.ts';

export interface TreeFolder {
  /** In the order in which the files were listed. */
  readonly entries: Map<string, TreeFolder | TreeFile>;
}

export interface LeftOut {
  readonly path: string;
  readonly why: string;
}

export function isFolder(entry: TreeFolder | TreeFile): entry is TreeFolder {
  return 'entries' in entry;
}

/** Throws MountError TREE for more files than there is memory for. */
export function buildFolders(tree: FileTree): { root: TreeFolder; leftOut: readonly LeftOut[] } {
  if (tree.files.length > TREE_FILES_MAX) {
    throw new MountError('TREE', `${tree.files.length} files; at most ${TREE_FILES_MAX} can be mounted`);
  }
  const root: TreeFolder = { entries: new Map() };
  const leftOut: LeftOut[] = [];
  for (const file of tree.files) {
    const segments = file.path.split('/');
    const why = unusable(file, segments) ?? place(root, segments, file, leftOut);
    if (why !== undefined) leftOut.push({ path: file.path, why });
  }
  return { root, leftOut };
}

function unusable(file: TreeFile, segments: readonly string[]): string | undefined {
  const { length } = file;
  if (length !== undefined && !(Number.isSafeInteger(length) && length >= 0)) return `its length is ${length}`;
  if (segments.length > TREE_DEPTH_MAX) return `it lies more than ${TREE_DEPTH_MAX} folders deep`;
  for (const segment of segments) {
    if (segment === '' || segment === '.' || segment === '..') return `"${segment}" is no name`;
    if (segment.includes('\0')) return 'a name holds NUL';
    if (!segment.isWellFormed()) return 'a name is not Unicode';
    if (Buffer.byteLength(segment) > ENTRY_NAME_BYTES_MAX) return `a name is over ${ENTRY_NAME_BYTES_MAX} bytes long`;
  }
  return undefined;
}

/** Puts the file where it belongs; why it can't be, where that is so. */
function place(root: TreeFolder, segments: readonly string[], file: TreeFile, leftOut: LeftOut[]): string | undefined {
  let folder = root;
  for (const segment of segments.slice(0, -1)) {
    const entry = folder.entries.get(segment);
    if (entry !== undefined && isFolder(entry)) {
      folder = entry;
      continue;
    }
    if (entry !== undefined) leftOut.push({ path: entry.path, why: 'a folder has its name' });
    const made: TreeFolder = { entries: new Map() };
    folder.entries.set(segment, made);
    folder = made;
  }
  const name = segments.at(-1)!;
  const entry = folder.entries.get(name);
  if (entry !== undefined) return isFolder(entry) ? 'a folder has its name' : 'it is listed twice';
  folder.entries.set(name, file);
  return undefined;
}
