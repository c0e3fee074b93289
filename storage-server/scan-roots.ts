/**
 * Finds the files to serve below the roots, with the version each has now. Nothing outside a root is ever served: links
 * are resolved, and one that leaves its root is skipped. What is skipped is told with its reason, never silently.
 * A root that is a packed file stands for the files in it; one that is found below a root is a file like others.
 */
import { constants, type Dirent } from 'node:fs';
import { access, readdir, realpath, stat } from 'node:fs/promises';
import { basename, dirname, resolve, sep } from 'node:path';
import { ServeError } from './errors.ts';
import { FileLooks, type Look } from './file-looks.ts';
import { LOOKS_AT_A_TIME } from './limits.ts';
import { type KnownPacks, readPackedRoot } from './packed-root.ts';
import {
  checkPath,
  DIRECTORY_ENTRIES_MAX,
  isPackedPath,
  isParquetPath,
  ProtocolError,
  versionEtag,
} from './protocol/index.ts';
import type { ServedFile, ServedRoot } from './served-file.ts';

export interface Skipped {
  readonly path: string;
  readonly reason: string;
}

/** Told of each place whose changes matter, before it is looked at: a folder, or just one name in it. */
export type OnPlace = (folder: string, name?: string) => void;

export interface ScannedRoots {
  readonly files: ServedFile[];
  readonly skipped: Skipped[];
}

/** Deepest folder below a root: ends a walk that a file system makes endless. */
const FOLDERS_DEEP_MAX = 64;

/**
 * Scans roots, each a folder or a file. One root appears by its content, several under their base names. `all` serves
 * files that are not named as Parquet too; a root that is a file is always served, the files of a packed one under the
 * paths that they were packed with. Throws ServeError.
 */
export async function scanRoots(
  roots: readonly string[],
  options: { all: boolean; onPlace?: OnPlace; packs?: KnownPacks },
): Promise<ScannedRoots> {
  if (roots.length === 0) throw new ServeError('ROOT', 'nothing to serve');
  const names = new Map<string, string>();
  const onPlace = options.onPlace ?? (() => {});
  const scan = new Scan(options.all, onPlace);
  for (const root of roots) {
    // The root may be a link that is to lead elsewhere, or be replaced as a whole.
    onPlace(dirname(resolve(root)), basename(resolve(root)));
    const resolved = await resolveRoot(root);
    // The name as given, even if it is a link: that is what people know it by.
    const name = basename(resolve(root));
    if (name === '') throw new ServeError('ROOT', `${root} has no name to appear under`);
    const other = names.get(name);
    if (other === resolved.path) throw new ServeError('NAMES', `${root} is named twice: name it once`);
    if (other !== undefined) {
      throw new ServeError(
        'NAMES',
        `${other} and ${resolved.path} would both appear as ${JSON.stringify(name)}: rename one, serve it through a ` +
          'link of another name, or start a server for each',
      );
    }
    names.set(name, resolved.path);
    if (resolved.path !== resolve(root)) onPlace(dirname(resolved.path), basename(resolved.path));
    if (resolved.isFolder) {
      const prefix = roots.length === 1 ? '' : `${name}/`;
      scan.enter({ name, prefix }, resolved.path);
      await scan.folder(resolved.path, prefix, [resolved.path]);
    } else if (isPackedPath(name)) {
      scan.packed(await readPackedRoot(resolved.path, root, name, options.packs));
    } else {
      scan.enter({ name, prefix: '' });
      await scan.file(resolved.path, name);
    }
  }
  await scan.settle();
  return { files: scan.files, skipped: scan.skipped };
}

async function resolveRoot(root: string): Promise<{ path: string; isFolder: boolean }> {
  try {
    const path = await realpath(root);
    const found = await stat(path);
    if (!found.isDirectory() && !found.isFile()) throw new ServeError('ROOT', `${root} is neither a folder nor a file`);
    await access(path, constants.R_OK);
    return { path, isFolder: found.isDirectory() };
  } catch (cause) {
    if (cause instanceof ServeError) throw cause;
    throw new ServeError('ROOT', `${root} ${rootFault(cause as NodeJS.ErrnoException)}`, { cause });
  }
}

function rootFault({ code, message }: NodeJS.ErrnoException): string {
  switch (code) {
    case 'ENOENT':
      return 'does not exist';
    case 'ENOTDIR':
      return 'does not exist: what is above it is a file';
    case 'EACCES':
      return 'may not be read by this user';
    default:
      return `can't be served: ${message}`;
  }
}

const NAME = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** A file that has not been looked at. */
interface Unseen {
  readonly localPath: string;
  readonly path: string;
  readonly root: ServedRoot;
}

class Scan {
  readonly files: ServedFile[] = [];
  readonly skipped: Skipped[] = [];
  readonly #all: boolean;
  readonly #onPlace: OnPlace;
  readonly #looks = new FileLooks();
  readonly #unseen: Unseen[] = [];
  #root: ServedRoot = { name: '', prefix: '' };
  /** The folder that links may not leave. */
  #within = '';

  constructor(all: boolean, onPlace: OnPlace) {
    this.#all = all;
    this.#onPlace = onPlace;
  }

  /** What is found from here on is of this root. */
  enter(root: ServedRoot, within = ''): void {
    this.#root = root;
    this.#within = within;
  }

  /** Walks a folder; `ancestors` are the resolved folders above and including it. */
  async folder(localPath: string, prefix: string, ancestors: readonly string[]): Promise<void> {
    let entries: Dirent<Buffer>[];
    this.#onPlace(localPath);
    try {
      entries = await readdir(localPath, { encoding: 'buffer', withFileTypes: true });
    } catch (error) {
      if (prefix === '') throw new ServeError('ROOT', (error as Error).message, { cause: error });
      this.#skip(prefix, (error as Error).message);
      return;
    }
    for (const entry of entries) {
      const name = decodeName(entry.name);
      if (name === undefined) {
        this.#skip(`${prefix}${entry.name.toString('latin1')}`, 'its name is not UTF-8');
      } else {
        await this.#entry(entry, `${localPath}${sep}${name}`, `${prefix}${name}`, ancestors);
      }
    }
  }

  async #entry(entry: Dirent<Buffer>, found: string, path: string, ancestors: readonly string[]): Promise<void> {
    let localPath = found;
    let isFolder = entry.isDirectory();
    let isFile = entry.isFile();
    if (!isFolder && !this.#all && !isParquetPath(path) && !entry.isSymbolicLink()) {
      this.#skip(path, unnamed(path));
      return;
    }
    if (entry.isSymbolicLink()) {
      try {
        localPath = await realpath(found);
        const target = await stat(localPath);
        isFolder = target.isDirectory();
        isFile = target.isFile();
      } catch (error) {
        this.#skip(path, (error as Error).message);
        return;
      }
      if (localPath !== this.#within && !localPath.startsWith(this.#within + sep)) {
        this.#skip(path, 'the link leaves the root');
        return;
      }
    }
    if (isFolder) {
      if (ancestors.includes(localPath)) this.#skip(path, 'the link leads to a folder that it is in');
      else if (ancestors.length > FOLDERS_DEEP_MAX)
        this.#skip(path, `it is more than ${FOLDERS_DEEP_MAX} folders deep`);
      else await this.folder(localPath, `${path}/`, [...ancestors, localPath]);
    } else if (!isFile) {
      this.#skip(path, 'it is neither a file nor a folder');
    } else if (!this.#all && !isParquetPath(path)) {
      this.#skip(path, unnamed(path));
    } else {
      await this.file(localPath, path);
    }
  }

  /** A file to look at, with others: `settle` has looked at all. */
  async file(localPath: string, path: string): Promise<void> {
    this.#unseen.push({ localPath, path, root: this.#root });
    if (this.#unseen.length >= LOOKS_AT_A_TIME) await this.settle();
  }

  async settle(): Promise<void> {
    const batch = this.#unseen.splice(0);
    const looks = await this.#looks.at(batch.map(({ localPath }) => localPath));
    for (const [k, unseen] of batch.entries()) this.#add(unseen, looks[k]!);
    this.#checkCount();
  }

  #add({ localPath, path, root }: Unseen, found: Look): void {
    try {
      checkPath(path);
      if (found instanceof Error) throw found;
      const length = Number(found.size);
      if (!Number.isSafeInteger(length)) throw new ProtocolError('NUMBER', 'its size is beyond 2^53');
      const modifiedMs = Number(found.mtimeNs / 1_000_000n);
      // Only these of what stat tells: there may be a million.
      const { size, mtimeNs, ctimeNs, ino, dev } = found;
      const store = { localPath, version: { size, mtimeNs, ctimeNs, ino, dev } };
      this.files.push({ path, length, etag: versionEtag(store.version), modifiedMs, store, root, start: 0 });
    } catch (error) {
      this.#skip(path, (error as Error).message);
    }
  }

  /** The files of a packed region. */
  packed(files: readonly ServedFile[]): void {
    for (const file of files) this.files.push(file);
    this.#checkCount();
  }

  #checkCount(): void {
    if (this.files.length > DIRECTORY_ENTRIES_MAX) {
      throw new ServeError('LIMIT', `more than ${DIRECTORY_ENTRIES_MAX} files`);
    }
  }

  #skip(path: string, reason: string): void {
    this.skipped.push({ path, reason });
  }
}

/** Why a file is not taken for Parquet. */
function unnamed(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1).startsWith('.') ? 'it is hidden' : 'it is not named as Parquet';
}

function decodeName(name: Uint8Array): string | undefined {
  try {
    return NAME.decode(name);
  } catch {
    return undefined;
  }
}
