/**
 * The decoded view of one version of a file, served from three places: headers and footer from memory, chunks that pass
 * through from the raw store, decoded ones from the chunk store. Its length is known when the footer has been read. A
 * read of a decoded chunk begins the same column of the next row groups.
 */
import { DecodeError, type FileMetadata } from '../../decode/index.ts';
import type { FetchedFooter } from '../../fetcher/index.ts';
import type { FileContent, Opening, ReadDone, RequestSignal } from '../fuse/content.ts';
import type { RawContent } from '../raw/raw-content.ts';
import type { StoredFile } from '../raw/stored-file.ts';
import { unitsOfChunk } from './chunk-feed.ts';
import type { ChunkStore } from './chunk-store.ts';
import { Copies } from './copies.ts';
import { DecodedChunk } from './decoded-chunk.ts';
import { type DecodedLayout, PAGE_BYTES, planDecodedFile, type Section } from './layout.ts';
import { plainChunkSpec } from './plain-chunk-spec.ts';
import { RecentColumns } from './recent-columns.ts';

const ZEROS = new Uint8Array(PAGE_BYTES);
/** Of all files of this thread. */
const COPIES = new Copies();

export interface DecodedContentOptions {
  /** The same version as it is in the source; closed with this. */
  readonly raw: RawContent;
  readonly chunks: ChunkStore;
  readonly footer: () => Promise<FetchedFooter>;
  readonly stored: () => Promise<StoredFile>;
  /** Bytes of the remote file. */
  readonly length: number;
  readonly chunkBytesMax: number;
  readonly depth: () => number;
  /** Told when a chunk of it is whole, and where it begins in the view. */
  readonly onDecoded?: (chunk: DecodedChunk, start: number) => void;
}

/** What is there when the footer has been read. */
interface Loaded {
  readonly metadata: FileMetadata | undefined;
  /** Undefined when the file passes through as it is. */
  readonly layout: DecodedLayout | undefined;
  readonly stored: StoredFile;
  readonly chunks: Map<Section, DecodedChunk>;
  readonly recent: RecentColumns;
}

export class DecodedContent implements FileContent {
  readonly #options: DecodedContentOptions;
  #loading: Promise<Loaded> | undefined;
  #loaded: Loaded | undefined;
  #closed = false;

  constructor(options: DecodedContentOptions) {
    this.#options = options;
  }

  /** The kernel's cache holds chunks of it: new handles go through the cache. */
  isInCache = false;

  /** What comes before the first chunk and after the last, in whole pages; the last page may end with the file. */
  ends(): { readonly offset: number; readonly bytes: Uint8Array }[] {
    const layout = this.#loaded?.layout;
    if (layout === undefined) return [];
    const [first, second] = layout.sections;
    const last = layout.sections.at(-1)!;
    const ends: { offset: number; bytes: Uint8Array }[] = [];
    if (first?.kind === 'bytes' && second?.kind === 'zeros') {
      const bytes = new Uint8Array(PAGE_BYTES);
      bytes.set(first.bytes);
      ends.push({ offset: 0, bytes });
    }
    if (last.kind === 'bytes') ends.push({ offset: last.start, bytes: last.bytes });
    return ends;
  }

  measure(_signal: RequestSignal, done: (error: unknown, length?: number) => void): void {
    this.#whenLoaded(
      ({ layout }) => done(undefined, layout?.length ?? this.#options.length),
      (error) => done(error),
    );
  }

  open(_signal: RequestSignal, done: (error: unknown, opening?: Opening) => void): void {
    this.#whenLoaded(
      ({ layout }) => done(undefined, { serve: layout === undefined || this.isInCache ? 'cached' : 'direct' }),
      (error) => done(error),
    );
  }

  read(offset: number, length: number, signal: RequestSignal, done: ReadDone): void {
    this.#whenLoaded(
      (loaded) => this.#read(loaded, offset, length, signal, done),
      (error) => done(error),
    );
  }

  released(handle: number): void {
    this.#options.raw.released(handle);
  }

  close(): void {
    this.#closed = true;
    const loaded = this.#loaded;
    if (loaded !== undefined) closeChunks(loaded);
    this.#options.raw.close();
  }

  #whenLoaded(use: (loaded: Loaded) => void, fail: (error: unknown) => void): void {
    if (this.#loaded !== undefined) {
      use(this.#loaded);
      return;
    }
    this.#loading ??= this.#load().then(
      (loaded) => {
        this.#loaded = loaded;
        if (this.#closed) closeChunks(loaded);
        return loaded;
      },
      (error: unknown) => {
        this.#loading = undefined;
        throw error;
      },
    );
    this.#loading.then(use).catch(fail);
  }

  async #load(): Promise<Loaded> {
    const { footer, stored, chunkBytesMax } = this.#options;
    const found = await footer().catch((error: unknown) => {
      // what is no Parquet, or can't be read as such, passes through as it is
      if (error instanceof DecodeError) return undefined;
      throw error;
    });
    const layout = found && planDecodedFile(found.metadata, found.thrift, { chunkBytesMax });
    return {
      metadata: found?.metadata,
      layout,
      stored: await stored(),
      chunks: new Map(),
      recent: new RecentColumns(),
    };
  }

  #read(loaded: Loaded, offset: number, length: number, signal: RequestSignal, done: ReadDone): void {
    const { raw } = this.#options;
    if (loaded.layout === undefined) {
      raw.read(offset, length, signal, done);
      return;
    }
    const { sections } = loaded.layout;
    const end = offset + length;
    const parts: { section: Section; from: number; to: number }[] = [];
    for (let k = sectionAt(sections, offset); k < sections.length && sections[k]!.start < end; k++) {
      const section = sections[k]!;
      const from = Math.max(offset, section.start) - section.start;
      const to = Math.min(end, section.start + section.length) - section.start;
      parts.push({ section, from, to });
    }
    if (parts.length === 1) this.#readPart(loaded, parts[0]!, signal, done);
    else this.#readParts(loaded, parts, signal, done);
  }

  /**
   * A read over several sections: the views of each are valid only while it is answered, so those of chunks that are
   * not the last to come are copied. Readers of columns ask for a chunk, or for a footer; who reads in order comes here.
   */
  #readParts(
    loaded: Loaded,
    parts: readonly { section: Section; from: number; to: number }[],
    signal: RequestSignal,
    done: ReadDone,
  ): void {
    const found: (readonly Uint8Array[])[] = new Array(parts.length);
    const copies: Uint8Array[] = [];
    const cancels = new Set<() => void>();
    let missing = parts.length;
    let over = false;
    const finish = (error: unknown): void => {
      over = true;
      signal.onAbort = undefined;
      for (const cancel of cancels) cancel();
      if (error === undefined) done(undefined, found.flat());
      else done(error);
      for (const copy of copies.splice(0)) COPIES.giveBack(copy);
    };
    for (const [k, part] of parts.entries()) {
      if (over) return;
      const inner = partSignal(signal);
      cancels.add(() => inner.onAbort?.());
      this.#readPart(loaded, part, inner, (error, views) => {
        if (over) return false;
        if (error !== undefined) finish(error);
        else {
          const isLasting = --missing === 0 || part.section.kind === 'bytes' || part.section.kind === 'zeros';
          if (isLasting) found[k] = views!;
          else {
            const copy = COPIES.copy(views!);
            copies.push(copy);
            found[k] = [copy];
          }
          if (missing === 0) finish(undefined);
        }
        return true;
      });
    }
    if (!over) {
      signal.onAbort = () => {
        over = true;
        for (const cancel of cancels) cancel();
      };
    }
  }

  #readPart(
    loaded: Loaded,
    { section, from, to }: { section: Section; from: number; to: number },
    signal: RequestSignal,
    done: ReadDone,
  ): void {
    if (section.kind === 'bytes') {
      done(undefined, [section.bytes.subarray(from, to)]);
    } else if (section.kind === 'zeros') {
      done(undefined, [ZEROS.subarray(from, to)]);
    } else if (section.kind === 'passed') {
      this.#options.raw.read(section.from + from, to - from, signal, done);
    } else {
      const chunk = this.#chunk(loaded, section);
      // all of it at once, of which its decoder asks for one piece after the other
      if (chunk.isAbsent) loaded.stored.prefetch(unitsOfChunk(chunk.source));
      const cancel = chunk.read(from, to - from, (error, views) => {
        signal.onAbort = undefined;
        done(error, views);
      });
      if (cancel !== undefined) signal.onAbort = cancel;
      this.#fetchAhead(loaded, section);
    }
  }

  #chunk(loaded: Loaded, section: Section & { kind: 'decoded' }): DecodedChunk {
    const known = loaded.chunks.get(section);
    if (known !== undefined) return known;
    const { metadata, stored } = loaded;
    const { group, column, pages } = section;
    const spec = plainChunkSpec(metadata!, group, column, pages.full.rows);
    const { chunks, onDecoded } = this.#options;
    const chunk = new DecodedChunk(chunks, { stored, spec, pages, group }, () => onDecoded?.(chunk, section.start));
    loaded.chunks.set(section, chunk);
    return chunk;
  }

  /** The same columns of the next row groups. They lie near each other, so that one request brings many of them. */
  #fetchAhead(loaded: Loaded, { group, column }: { group: number; column: number }): void {
    const columns = loaded.recent.note(group, column);
    const end = Math.min(loaded.metadata!.rowGroups.length, group + this.#options.depth());
    const absent: DecodedChunk[] = [];
    for (let other = group + 1; other < end; other++) {
      for (const one of columns) {
        const section = loaded.layout!.decoded.get(other)?.get(one);
        if (section === undefined) continue;
        const chunk = this.#chunk(loaded, section);
        if (chunk.isAbsent) absent.push(chunk);
      }
    }
    if (absent.length === 0) return;
    // the bytes at once, their decoding when decoders have time
    loaded.stored.prefetch(absent.flatMap((chunk) => unitsOfChunk(chunk.source)));
    this.#options.chunks.prefetch(absent);
  }
}

function closeChunks({ chunks }: Loaded): void {
  const error = new Error('the file was closed');
  for (const chunk of chunks.values()) chunk.close(error);
}

/** A signal for a part of a request. */
function partSignal(whole: RequestSignal): RequestSignal {
  return {
    get aborted() {
      return whole.aborted;
    },
    handle: whole.handle,
    pid: whole.pid,
    onAbort: undefined,
    get abortSignal() {
      return whole.abortSignal;
    },
  };
}

/** The index of the section that holds `offset`. */
function sectionAt(sections: readonly Section[], offset: number): number {
  let low = 0;
  let high = sections.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sections[middle]!.start <= offset) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}
