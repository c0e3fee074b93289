/**
 * The sources of a daemon by their names. Each is opened when it is first asked for and then stays open, shared by all
 * scans of it; one that a reload changed or removed is closed when the last scan of it has ended.
 */
import { resolve } from 'node:path';
import { openSource, type Source } from '../../vfs/index.ts';
import type { SourceConfig } from '../config/config.ts';
import type { Log } from '../log.ts';
import { logEvents } from '../source-log.ts';
import { SOURCE_OPTION_NAMES, type SourceAccess, sourceAccess, withoutCredentials } from '../source-options.ts';
import { HttpError } from './http-error.ts';

/** A source in use; it must be released once. */
export interface SourceLease {
  readonly source: Source;
  readonly config: SourceConfig;
  release(): void;
}

interface Entry {
  readonly name: string;
  config: SourceConfig;
  opening: Promise<Source> | undefined;
  users: number;
  isRetired: boolean;
}

export class NamedSources {
  readonly #entries = new Map<string, Entry>();
  readonly #log: Log;
  readonly #onOpened: (source: Source) => (() => void) | undefined;
  /** Sources that are being closed. */
  readonly #closing = new Set<Promise<void>>();

  /** `onOpened` hears of every source that is opened; what it returns is called when that one is closed. */
  constructor(log: Log, onOpened: (source: Source) => (() => void) | undefined = () => undefined) {
    this.#log = log;
    this.#onOpened = onOpened;
  }

  /** Names and locations, by name. */
  list(): ReadonlyArray<readonly [name: string, config: SourceConfig]> {
    return [...this.#entries.values()]
      .map(({ name, config }) => [name, config] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1));
  }

  /** Makes the sources those of `configs`. What stays as it is stays open. */
  apply(configs: ReadonlyMap<string, SourceConfig>): void {
    for (const [name, entry] of this.#entries) {
      const config = configs.get(name);
      if (config !== undefined && isSameConnection(config, entry.config)) {
        entry.config = config;
        continue;
      }
      this.#entries.delete(name);
      this.#retire(entry);
    }
    for (const [name, config] of configs) {
      if (this.#entries.has(name)) continue;
      this.#entries.set(name, { name, config, opening: undefined, users: 0, isRetired: false });
    }
  }

  /** The source of a name, opened if it is not yet. Throws HttpError SOURCE, and what opening throws. */
  async acquire(name: string): Promise<SourceLease> {
    const entry = this.#entries.get(name);
    if (entry === undefined)
      throw new HttpError('SOURCE', `no source ${JSON.stringify(name)}; GET /v1/sources lists them`);
    entry.users++;
    try {
      entry.opening ??= this.#open(entry.name, entry.config);
      const source = await entry.opening;
      return { source, config: entry.config, release: once(() => this.#release(entry)) };
    } catch (error) {
      entry.opening = undefined;
      this.#release(entry);
      throw error;
    }
  }

  /** A source for one request, which says where it is: credentials of the daemon are not for any place that somebody names. */
  async borrow(location: string, config: SourceConfig): Promise<SourceLease> {
    const source = await this.#open(location, config, withoutCredentials);
    return { source, config, release: once(() => this.#close(location, source)) };
  }

  async #open(
    name: string,
    config: SourceConfig,
    shown: (access: SourceAccess) => SourceAccess = (access) => access,
  ): Promise<Source> {
    const { location, folder } = config;
    const source = await openSource(location, {
      workingFolder: folder,
      ...shown(sourceAccess(config, (path) => resolve(folder, path))),
      onUnpinned: (path, reason) => this.#log.warn({ source: name, path }, reason),
      onEvent: logEvents(this.#log, { source: name }),
      onTransport: (text, outcome) => this.#log[outcome === 'no device' ? 'debug' : 'info']({ source: name }, text),
      onSkipped: (path, reason) => this.#log.debug({ source: name, path, reason }, 'skipped'),
    });
    this.#log.debug({ source: name, location }, 'source opened');
    const forget = this.#onOpened(source);
    if (forget !== undefined) this.#forget.set(source, forget);
    return source;
  }

  readonly #forget = new WeakMap<Source, () => void>();

  #release(entry: Entry): void {
    entry.users--;
    if (entry.isRetired && entry.users === 0) this.#closeEntry(entry);
  }

  #retire(entry: Entry): void {
    entry.isRetired = true;
    if (entry.users === 0) this.#closeEntry(entry);
  }

  #closeEntry({ name, opening }: Entry): void {
    opening?.then(
      (source) => this.#close(name, source),
      () => {}, // told to who asked for it
    );
  }

  #close(name: string, source: Source): void {
    this.#forget.get(source)?.();
    const closing = source
      .close()
      .catch((error: unknown) => this.#log.warn({ source: name, err: error }, 'closing a source failed'))
      .finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  /** Retires every source and waits until those that nobody uses are closed. */
  async close(): Promise<void> {
    this.apply(new Map());
    await Promise.resolve(); // sources that were open are in #closing by then
    await Promise.all(this.#closing);
  }
}

/** Whether a source that is open serves the other configuration as well: how it is scanned may differ. */
function isSameConnection(a: SourceConfig, b: SourceConfig): boolean {
  return a.location === b.location && a.folder === b.folder && SOURCE_OPTION_NAMES.every((name) => a[name] === b[name]);
}

function once(act: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    act();
  };
}
