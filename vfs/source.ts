/**
 * A source: the files that a location means, to list, stat, open and read. Composes a transport, globs and footers;
 * keeps nothing but the footers of the versions last used. A location is a file, a folder (all Parquet files below)
 * or a glob (what it matches). A file named like the location, wildcards and all, comes before what the glob matches.
 */
import type { FileMetadata } from '../decode/index.ts';
import type { FileVersion, Transport, TransportCounters } from '../fetcher/index.ts';
import { FetchError, fetchFooter } from '../fetcher/index.ts';
import { isParquetPath } from '../storage-server/protocol/index.ts';
import { FOOTERS_KEPT_MAX } from './limits.ts';
import type { Location } from './location.ts';
import { parseLocation } from './location.ts';
import { VirtualFile } from './virtual-file.ts';

/** `path` is what the URL's path is called within the transport. */
export interface OpenedTransport {
  readonly transport: Transport;
  readonly path: string;
  readonly counters: TransportCounters;
}

/** Opens the source that a URL without wildcards names: a folder of a server or of the local files. */
export type OpenTransport = (url: string) => Promise<OpenedTransport>;

export interface SourceOptions {
  /** Bytes of the first read of a file's end. */
  readonly footerTailBytes?: number;
  /** Folder that local paths are relative to. */
  readonly workingFolder?: string;
}

export class Source {
  readonly location: Location;
  readonly transport: Transport;
  readonly counters: TransportCounters;
  /** Bytes and requests that footers took so far. */
  readonly footers = { bytes: 0, requests: 0 };
  readonly #footerTailBytes: number | undefined;
  /** How the transport calls the folder that the location's glob starts in: '' or with a "/" at its end. */
  readonly #base: string;
  readonly #kept = new Map<string, Promise<FileMetadata>>();

  constructor(location: Location, opened: OpenedTransport, footerTailBytes?: number) {
    this.location = location;
    this.transport = opened.transport;
    this.counters = opened.counters;
    this.#footerTailBytes = footerTailBytes;
    const folder = opened.path.replace(/^\/+|\/+$/g, '');
    this.#base = folder === '' ? '' : `${folder}/`;
  }

  /** The files of the location, in byte order of their paths. Throws NOT_FOUND when there are none. */
  async list(): Promise<FileVersion[]> {
    const { glob } = this.location;
    // A file or folder is asked for by its own name, a glob by the folder it starts in.
    const below = glob.literal ?? glob.prefix.slice(0, -1);
    const files = await this.transport.list(this.#inTransport(below));
    const named = files.map((file) => ({ file, name: this.#inLocation(file.path) }));
    const exact = named.find(({ name }) => name === glob.verbatim);
    if (exact !== undefined) return [exact.file];
    const folder = glob.verbatim === '' ? '' : `${glob.verbatim}/`;
    const inFolder = named.filter(({ name }) => name?.startsWith(folder) && isParquetPath(name));
    const found = inFolder.length > 0 ? inFolder : named.filter(({ name }) => name !== undefined && glob.matches(name));
    if (found.length === 0) throw this.#nothing(named.flatMap(({ name }) => name ?? []));
    return found.map(({ file }) => file);
  }

  /** The current version of the file with this path, as `list` gives it. Throws NOT_FOUND. */
  async stat(path: string): Promise<FileVersion> {
    const file = (await this.transport.list(path)).find((one) => one.path === path);
    if (file === undefined) throw new FetchError('NOT_FOUND', `no file ${JSON.stringify(path)} in the source`);
    return file;
  }

  /** Opens the current version of a path, or just the version that was listed. */
  async open(file: string | FileVersion): Promise<VirtualFile> {
    const version = typeof file === 'string' ? await this.stat(file) : file;
    return new VirtualFile(version, this.transport, () => this.#footer(version));
  }

  async close(): Promise<void> {
    this.#kept.clear();
    await this.transport.close();
  }

  #inTransport(path: string): string {
    const { prefix } = this.location.glob;
    return (this.#base + path.slice(prefix.length)).replace(/\/$/, '');
  }

  /** The path as the location would write it; undefined for what is not in its folder. */
  #inLocation(path: string): string | undefined {
    return path.startsWith(this.#base) ? this.location.glob.prefix + path.slice(this.#base.length) : undefined;
  }

  #nothing(names: readonly string[]): FetchError {
    const { text, glob } = this.location;
    const near = names.slice(0, 3).map((name) => JSON.stringify(name));
    const hint =
      near.length > 0
        ? `; there are ${names.length} other files, such as ${near.join(', ')}`
        : glob.prefix === ''
          ? '; the source has no files'
          : `; there is nothing in ${JSON.stringify(glob.prefix)}`;
    return new FetchError('NOT_FOUND', `no Parquet file at ${JSON.stringify(text)}${hint}`);
  }

  #footer(version: FileVersion): Promise<FileMetadata> {
    const key = `${version.etag}\0${version.path}`;
    const kept = this.#kept.get(key) ?? this.#fetchFooter(version, key);
    // Last used is last in the map.
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    if (this.#kept.size > FOOTERS_KEPT_MAX) this.#kept.delete(this.#kept.keys().next().value!);
    return kept;
  }

  async #fetchFooter(version: FileVersion, key: string): Promise<FileMetadata> {
    try {
      const options = this.#footerTailBytes === undefined ? {} : { tailBytes: this.#footerTailBytes };
      const { metadata, bytes, requests } = await fetchFooter(this.transport, version, options);
      this.footers.bytes += bytes;
      this.footers.requests += requests;
      return metadata;
    } catch (error) {
      this.#kept.delete(key);
      throw error;
    }
  }
}

/** Opens the source of a location through `open`. Throws BAD_URL, and what the transport throws. */
export async function openSourceWith(open: OpenTransport, text: string, options: SourceOptions = {}): Promise<Source> {
  const location = parseLocation(text, options.workingFolder);
  return new Source(location, await open(folderUrl(location)), options.footerTailBytes);
}

/** The URL of the folder that the location's glob starts in. */
function folderUrl({ scheme, authority, glob }: Location): string {
  const folder = glob.prefix.split('/').map(encodeURIComponent).join('/');
  return `${scheme}://${authority}/${folder}`;
}
