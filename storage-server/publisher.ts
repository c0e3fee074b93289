/**
 * Publishes what a source has now, when it is told to: one look at a time, and however many ask while it runs, one more
 * behind it. Where nothing has changed nothing is published. What goes wrong is logged and leaves what is served as it is.
 */
import type { ServerCounters } from './counters.ts';
import { ServeError } from './errors.ts';
import { SKIPPED_TOLD_MAX } from './limits.ts';
import type { Region } from './region.ts';
import type { RegionHolder } from './region-holder.ts';
import type { LoadedRegion, RegionSource } from './region-source.ts';
import type { OnPlace, Skipped } from './scan-roots.ts';

/** What became of an attempt to publish. */
export type PublishOutcome = 'published' | 'unchanged' | 'failed';

/** What watches the places that a load looks at. */
export interface PlaceWatcher {
  readonly onPlace: OnPlace;
  /** A look begins, and has ended; `complete` if it saw all there is. */
  beginLook(): void;
  endLook(complete: boolean): void;
}

type Log = (event: string, peer: string, detail: string) => void;

export interface PublisherOptions {
  readonly counters: ServerCounters;
  readonly log: Log;
  readonly watcher?: PlaceWatcher | undefined;
  /** What a region needs before it is served; it does not fail. */
  readonly prepare?: (region: Region) => Promise<void>;
}

export class Publisher {
  readonly #source: RegionSource;
  readonly #holder: RegionHolder;
  readonly #counters: ServerCounters;
  readonly #log: Log;
  readonly #watcher: PlaceWatcher | undefined;
  readonly #prepare: ((region: Region) => Promise<void>) | undefined;
  #skipped: readonly Skipped[];
  #running: Promise<unknown> = Promise.resolve();
  #queued: Promise<PublishOutcome> | undefined;
  #closed = false;

  constructor(
    source: RegionSource,
    holder: RegionHolder,
    first: LoadedRegion,
    { counters, log, watcher, prepare }: PublisherOptions,
  ) {
    this.#source = source;
    this.#holder = holder;
    this.#skipped = first.skipped;
    this.#counters = counters;
    this.#log = log;
    this.#watcher = watcher;
    this.#prepare = prepare;
  }

  /** Files that the last look left out. */
  get skipped(): readonly Skipped[] {
    return this.#skipped;
  }

  /** Looks again, and publishes if anything has changed since. The look begins after the call. Never rejects. */
  republish(): Promise<PublishOutcome> {
    this.#queued ??= this.#running.then(() => {
      this.#queued = undefined;
      const look = this.#look();
      this.#running = look;
      return look;
    });
    return this.#queued;
  }

  /** Publishes nothing any more, also not what a look that is running will find. */
  close(): void {
    this.#closed = true;
  }

  async #look(): Promise<PublishOutcome> {
    if (this.#closed) return 'unchanged';
    const previous = this.#holder.current;
    let complete = false;
    try {
      this.#watcher?.beginLook();
      const { region, skipped } = await this.#source.load(previous, this.#watcher?.onPlace ?? (() => {}));
      complete = true;
      tellSkipped(skipped, this.#skipped, this.#log);
      this.#skipped = skipped;
      if (region === previous || this.#closed) return 'unchanged';
      await this.#prepare?.(region);
      if (this.#closed) return 'unchanged';
      this.#publish(previous, region);
      return 'published';
    } catch (error) {
      this.#counters.publishFailures++;
      const reason = error instanceof ServeError ? error.reason : `${(error as Error).stack}`;
      this.#log('not published', '', `${reason}; what was served before is still served`);
      return 'failed';
    } finally {
      this.#watcher?.endLook(complete);
    }
  }

  #publish(previous: Region, region: Region): void {
    this.#holder.publish(region);
    const name = Buffer.from(region.generation).toString('hex');
    this.#log('published', '', `generation ${name}, ${difference(previous, region)}`);
    if (region.directory.entries.length === 0) this.#log('warning', '', 'there is no file to serve any more');
  }
}

/** Logs the files that a look has left out, but for those that it is `known` of. */
export function tellSkipped(skipped: readonly Skipped[], known: readonly Skipped[], log: Log): void {
  const told = new Set(known.map(({ path, reason }) => `${path}\0${reason}`));
  const news = skipped.filter(({ path, reason }) => !told.has(`${path}\0${reason}`));
  for (const { path, reason } of news.slice(0, SKIPPED_TOLD_MAX)) log('skipped', '', `${path}: ${reason}`);
  if (news.length > SKIPPED_TOLD_MAX) log('skipped', '', `${news.length - SKIPPED_TOLD_MAX} more`);
}

/** In words. */
function difference(before: Region, after: Region): string {
  const etags = new Map(before.directory.entries.map(({ path, etag }) => [path, etag]));
  let added = 0;
  let changed = 0;
  for (const { path, etag } of after.directory.entries) {
    const old = etags.get(path);
    if (old === undefined) added++;
    else if (old !== etag) changed++;
    etags.delete(path);
  }
  const { length } = after.directory.entries;
  return `${length} files: ${added} new, ${changed} changed, ${etags.size} gone`;
}
