/**
 * A source: the files that a location means, to list, stat, open and read. Composes a transport, globs and footers;
 * keeps nothing but the footers of the versions last used. A location is a file, a folder (all Parquet files below)
 * or a glob (what it matches). A file named like the location, wildcards and all, comes before what the glob matches.
 */
import { relative } from 'node:path';
import type {
  DiskCache,
  FetchedFooter,
  FileVersion,
  OpenedTransport,
  OpenTransportOptions,
  Transport,
  TransportActivity,
  TransportCounters,
} from '../fetcher/index.ts';
import { FetchError, FOOTER_TAIL_BYTES, fetchFooter, findFile, openTransport } from '../fetcher/index.ts';
import { isParquetPath } from '../storage-server/protocol/index.ts';
import { parseGlob } from './glob.ts';
import { FOOTERS_KEPT_MAX } from './limits.ts';
import type { Location } from './location.ts';
import { formatLocation, looksLikeServer } from './location.ts';
import { locate } from './packed-location.ts';
import { VirtualFile } from './virtual-file.ts';

/** Opens the source that a URL without wildcards names; `path` is what the URL's path is called within it. */
export type OpenTransport = (url: string) => Promise<OpenedTransport>;

export interface SourceOptions extends OpenTransportOptions {
  /** Bytes of the first read of a file's end. */
  readonly footerTailBytes?: number;
  /** Folder that local paths are relative to. */
  readonly workingFolder?: string;
}

/** What a location means. */
export interface Listing {
  /** In byte order of their paths; at least one. */
  readonly files: readonly FileVersion[];
  /** Where the location is a folder: how many files below it are left out, because they are not named as Parquet. */
  readonly leftOut: number;
}

export class Source {
  readonly location: Location;
  readonly transport: Transport;
  readonly counters: Readonly<TransportCounters>;
  /** What is under way; absent where the transport does not say. */
  readonly activity: Readonly<TransportActivity> | undefined;
  /** Where what is read is kept; whoever opened it closes it. */
  readonly diskCache: DiskCache | undefined;
  /** Bytes and requests that footers took so far. */
  readonly footers = { bytes: 0, requests: 0 };
  readonly #footerTailBytes: number | undefined;
  /** How the transport calls the folder that the location's glob starts in: '' or with a "/" at its end. */
  readonly #base: string;
  /** The transport for footers: every byte of them is counted, those of reads that fail too. */
  readonly #counting: Transport;
  readonly #kept = new Map<string, Promise<FetchedFooter>>();
  /** The end of a file that came when the file was looked for, until its footer is wanted. */
  #tail: { readonly key: string; readonly tail: Uint8Array; readonly tailMs: number } | undefined;

  constructor(location: Location, opened: OpenedTransport, footerTailBytes?: number) {
    this.location = location;
    this.transport = opened.transport;
    this.counters = opened.counters;
    this.activity = opened.activity;
    this.diskCache = opened.diskCache;
    this.#footerTailBytes = footerTailBytes;
    this.#counting = countingReads(opened.transport, this.footers);
    this.#base = location.scheme === 's3' ? opened.path : folderOf(opened.path);
  }

  /** The files of the location, in byte order of their paths. Throws NOT_FOUND when there are none. */
  async list(): Promise<readonly FileVersion[]> {
    return (await this.listing()).files;
  }

  /** The same with what it leaves out. */
  async listing(): Promise<Listing> {
    return this.#find(false);
  }

  /** The files of the location; of a folder all of them, not only Parquet. Throws NOT_FOUND when there are none. */
  async everything(): Promise<readonly FileVersion[]> {
    return (await this.#find(true)).files;
  }

  async #find(all: boolean): Promise<Listing> {
    const { glob } = this.location;
    const written = await this.#asWritten(all);
    if (written !== undefined) return written;
    const exact = await this.#exact();
    if (exact !== undefined) return { files: [exact], leftOut: 0 };
    const named = (await this.#candidates()).map((file) => ({ file, name: this.#inLocation(file.path) }));
    const verbatim = named.find(({ name }) => name === glob.verbatim);
    if (verbatim !== undefined) return { files: [verbatim.file], leftOut: 0 };
    const folder = glob.verbatim === '' ? '' : `${glob.verbatim}/`;
    const inFolder = named.filter(({ name }) => name?.startsWith(folder)).map(({ file }) => file);
    const parquet = all ? inFolder : inFolder.filter(({ path }) => isParquetPath(path));
    if (parquet.length > 0) return { files: parquet, leftOut: inFolder.length - parquet.length };
    const found = named.filter(({ name }) => name !== undefined && glob.matches(name)).map(({ file }) => file);
    if (found.length === 0) throw this.#nothing(named.flatMap(({ name }) => name ?? []));
    return { files: found, leftOut: 0 };
  }

  /** The file that a location without wildcards names, where the transport finds it without a listing. */
  async #exact(): Promise<FileVersion | undefined> {
    const { literal } = this.location.glob;
    if (literal === undefined || literal === '') return undefined;
    const path = this.#inTransport(literal);
    if (!isParquetPath(path)) return this.transport.find?.(path);
    // whoever names a Parquet file will read its footer
    const tailBytes = this.#footerTailBytes ?? FOOTER_TAIL_BYTES;
    let end: { readonly tail: Uint8Array; readonly tailMs: number } | undefined;
    const onTail = (tail: Uint8Array, tailMs: number): void => {
      end = { tail, tailMs };
    };
    const found = await this.transport.find?.(path, { tailBytes, onTail });
    if (found !== undefined && end !== undefined) this.#tail = { key: keyOf(found), ...end };
    return found;
  }

  /** The file, or the folder, whose name is the location's path with its percent signs as they stand. */
  async #asWritten(all: boolean): Promise<Listing | undefined> {
    const { asWritten, glob, scheme, pack } = this.location;
    if (asWritten === glob.verbatim) return undefined;
    if (!isStorageServer(scheme) && pack === undefined && !asWritten.startsWith(glob.prefix)) return undefined;
    const path = asWritten.startsWith(glob.prefix) ? this.#inTransport(asWritten) : asWritten;
    const named = await this.transport.list(path);
    const exact = named.find((file) => file.path === path);
    if (exact !== undefined) return { files: [exact], leftOut: 0 };
    const inFolder = named.filter((file) => file.path.startsWith(`${path}/`));
    const files = all ? inFolder : inFolder.filter((file) => isParquetPath(file.path));
    return files.length === 0 ? undefined : { files, leftOut: inFolder.length - files.length };
  }

  /** How to write the location of one of its files, so that it can be opened by it. */
  locationOf(path: string): string {
    return formatLocation(this.location, this.#inLocation(path) ?? path);
  }

  /** A file's path within the folder that the location names, or that its wildcards begin in. */
  pathWithin(path: string): string {
    const name = this.#inLocation(path) ?? path;
    const { verbatim, prefix } = this.location.glob;
    const folder = name.startsWith(`${verbatim}/`) ? `${verbatim}/` : prefix;
    return name.startsWith(folder) ? name.slice(folder.length) : name;
  }

  /** A file's path for people: as the server has it, or as the working folder or the root of this machine does. */
  shown(path: string): string {
    return this.#shownName(this.#inLocation(path) ?? path);
  }

  /** The local file that holds a file's bytes; undefined when none does. */
  storedAt(path: string): string | undefined {
    const { scheme, pack } = this.location;
    if (scheme !== 'file') return undefined;
    return pack === undefined ? this.locationOf(path) : `/${pack}`;
  }

  #shownName(name: string): string {
    const { pack } = this.location;
    return pack === undefined ? this.#shownPath(name) : `${this.#shownPath(pack)}!/${name}`;
  }

  #shownPath(path: string): string {
    const { scheme, relativeTo } = this.location;
    if (scheme !== 'file') return path;
    if (relativeTo === undefined) return `/${path}`;
    return relative(relativeTo, `/${path}`) + (path.endsWith('/') ? '/' : '');
  }

  /** What the location may mean: what lies in the folder it names, else what begins as it does. */
  async #candidates(): Promise<readonly FileVersion[]> {
    const { literal, lead } = this.location.glob;
    if (literal !== undefined && literal !== '') {
      const inFolder = await this.transport.list(this.#inTransport(`${literal}/`));
      if (inFolder.length > 0) return inFolder;
    }
    return this.transport.list(this.#inTransport(lead));
  }

  /** The current version of the file with this path, as `list` gives it. Throws NOT_FOUND. */
  async stat(path: string): Promise<FileVersion> {
    const file = await findFile(this.transport, path);
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
    return this.#base + path.slice(this.location.glob.prefix.length);
  }

  /** The path as the location would write it; undefined for what is not in its folder. */
  #inLocation(path: string): string | undefined {
    return path.startsWith(this.#base) ? this.location.glob.prefix + path.slice(this.#base.length) : undefined;
  }

  #nothing(names: readonly string[]): FetchError {
    const { text, glob, scheme, pack } = this.location;
    if (isWebServer(scheme) && pack === undefined) {
      return new FetchError('NOT_FOUND', `${JSON.stringify(text)}: the server has no such file`);
    }
    const message = `no Parquet file at ${JSON.stringify(text)}; ${this.#others(names)}`;
    const deeper = inDeeperFolders(glob.pattern);
    if (deeper !== undefined && names.some(parseGlob(deeper.pattern).matches)) {
      return new FetchError('NOT_FOUND', `${message}; \`*\` does not cross folders, try \`${deeper.end}\``);
    }
    if (looksLikeServer(this.location)) {
      return new FetchError('NOT_FOUND', `${message}; a server is written rdma://${text}`);
    }
    if (names.length > 0 || !isStorageServer(scheme)) return new FetchError('NOT_FOUND', message);
    const others = isParquetPath(glob.pattern) ? '' : ', and only Parquet files unless it has --all';
    return new FetchError('NOT_FOUND', `${message} (a server serves what it published last${others})`);
  }

  /** What there is instead. */
  #others(names: readonly string[]): string {
    const near = names.slice(0, 3).map((name) => JSON.stringify(this.#shownName(name)));
    if (near.length > 1) return `there are ${names.length} other files, such as ${near.join(', ')}`;
    if (near.length === 1) return `there is one other file, ${near[0]}`;
    const { lead } = this.location.glob;
    if (lead === '') return 'the source has no files';
    return `nothing there begins with ${JSON.stringify(this.#shownName(lead))}`;
  }

  #footer(version: FileVersion): Promise<FetchedFooter> {
    const key = keyOf(version);
    const kept = this.#kept.get(key) ?? this.#fetchFooter(version, key);
    // Last used is last in the map.
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    if (this.#kept.size > FOOTERS_KEPT_MAX) this.#kept.delete(this.#kept.keys().next().value!);
    return kept;
  }

  async #fetchFooter(version: FileVersion, key: string): Promise<FetchedFooter> {
    try {
      const { tail, tailMs } = this.#tail?.key === key ? this.#tail : {};
      this.#tail = undefined;
      const options = this.#footerTailBytes === undefined ? {} : { tailBytes: this.#footerTailBytes };
      return await fetchFooter(this.#counting, version, { ...options, tail, tailMs });
    } catch (error) {
      this.#kept.delete(key);
      throw error;
    }
  }
}

const keyOf = ({ etag, path }: FileVersion): string => `${etag}\0${path}`;

/** A transport's name for a folder, for what begins with it. */
function folderOf(path: string): string {
  const folder = path.replace(/^\/+|\/+$/g, '');
  return folder === '' ? '' : `${folder}/`;
}

function isStorageServer(scheme: Location['scheme']): boolean {
  return scheme === 'rdma' || scheme === 'rdmas';
}

function isWebServer(scheme: Location['scheme']): boolean {
  return scheme === 'http' || scheme === 'https';
}

function countingReads(transport: Transport, totals: { bytes: number; requests: number }): Transport {
  return {
    list: (prefix) => transport.list(prefix),
    close: () => transport.close(),
    read(file, start, into, options) {
      let arrived = 0;
      const onArrived = (bytes: number) => {
        totals.bytes += bytes - arrived;
        arrived = bytes;
        options?.onArrived?.(bytes);
      };
      totals.requests++;
      return transport.read(file, start, into, { ...options, onArrived });
    },
  };
}

/**
 * Opens the source of a location (location.ts, packed-location.ts): nothing is sent yet, so a server that is not there shows with the
 * first list or read. Throws BAD_URL, and NOT_FOUND for a local folder that does not exist. `open` is for tests.
 */
export async function openSource(
  text: string,
  options: SourceOptions = {},
  open: OpenTransport = (url) => openTransport(url, options),
): Promise<Source> {
  const location = await locate(text, options.workingFolder);
  try {
    return new Source(location, await open(folderUrl(location)), options.footerTailBytes);
  } catch (error) {
    if (!(error instanceof FetchError) || error.code !== 'NOT_FOUND' || !looksLikeServer(location)) throw error;
    throw new FetchError('NOT_FOUND', `${error.reason}; a server is written rdma://${text}`, { cause: error });
  }
}

/** The pattern with its last segment in folders of any depth, and the end of that. */
function inDeeperFolders(pattern: string): { pattern: string; end: string } | undefined {
  const slash = pattern.lastIndexOf('/') + 1;
  const last = pattern.slice(slash);
  if (!last.includes('*') || last === '**') return undefined;
  return { pattern: `${pattern.slice(0, slash)}**/${last}`, end: `**/${last}` };
}

/** The URL of the folder that the location's glob starts in. */
function folderUrl({ scheme, authority, pack, query = '', glob }: Location): string {
  // a "!" of a name is not the one behind a packed file
  const encode = (path: string): string => path.split('/').map(encodeURIComponent).join('/').replaceAll('!', '%21');
  const within = encode(glob.prefix);
  return `${scheme}://${authority}/${pack === undefined ? within + query : `${encode(pack)}${query}!/${within}`}`;
}
