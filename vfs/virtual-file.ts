/**
 * One version of one file of a source, open for reading: any range of its bytes, and its footer, read once. Every
 * read is of the version that was opened or fails; a file that was replaced is opened again, not read on.
 */
import type { FileMetadata, Range } from '../decode/index.ts';
import type { FetchedFooter, FileVersion, Transport } from '../fetcher/index.ts';
import { FetchError } from '../fetcher/index.ts';
import { READ_BYTES_MAX } from './limits.ts';

export class VirtualFile {
  readonly version: FileVersion;
  readonly #transport: Transport;
  readonly #footer: () => Promise<FetchedFooter>;
  readonly #closed = new AbortController();

  /** Made by a source, which shares footers between the handles of a version. */
  constructor(version: FileVersion, transport: Transport, footer: () => Promise<FetchedFooter>) {
    this.version = version;
    this.#transport = transport;
    this.#footer = footer;
  }

  /**
   * Exactly the bytes of `range`, in `into` when it is given (of just that length; may be shared memory). Throws
   * OUT_OF_RANGE for what is not in the file; after any failure the content of `into` is undefined.
   */
  async read(range: Range, into?: Uint8Array, options: { readonly signal?: AbortSignal } = {}): Promise<Uint8Array> {
    this.#checkOpen();
    const { path, length } = this.version;
    const { start, end } = range;
    const whole = Number.isSafeInteger(start) && Number.isSafeInteger(end);
    if (!whole || start < 0 || start > end || end > length) {
      throw new FetchError('OUT_OF_RANGE', `${path}: bytes ${start} to ${end} of a file of ${length}`);
    }
    const bytes = end - start;
    if (into !== undefined && into.byteLength !== bytes) {
      throw new RangeError(`a buffer of ${into.byteLength} bytes for a range of ${bytes}`);
    }
    if (into === undefined && bytes > READ_BYTES_MAX) {
      throw new FetchError('MEMORY', `${path}: a read of ${bytes} bytes at once; read at most ${READ_BYTES_MAX}`);
    }
    const target = into ?? new Uint8Array(bytes);
    if (bytes === 0) return target;
    const closed = this.#closed.signal;
    const signal = options.signal === undefined ? closed : AbortSignal.any([closed, options.signal]);
    await this.#transport.read(this.version, start, target, { signal });
    return target;
  }

  /** The file's metadata; fetched once for all handles of this version. */
  async footer(): Promise<FileMetadata> {
    return (await this.fetchedFooter()).metadata;
  }

  /** The same with the bytes it was parsed from. */
  async fetchedFooter(): Promise<FetchedFooter> {
    this.#checkOpen();
    return this.#footer();
  }

  /** Cancels what is being read. Footers stay with the source. */
  close(): void {
    this.#closed.abort();
  }

  #checkOpen(): void {
    if (this.#closed.signal.aborted) throw new FetchError('CLOSED', `${this.version.path} was closed`);
  }
}
