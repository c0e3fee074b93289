/**
 * The region that is served now. One that is published replaces it at once and for everybody: READs that are not being
 * read from storage yet are refused. A region that was replaced, and what it holds in memory, is only kept alive by the
 * bursts that were begun under it: nothing else may refer to one.
 */
import type { ServerCounters } from './counters.ts';
import { RKEYS_REMEMBERED } from './limits.ts';
import type { Region } from './region.ts';

export class RegionHolder {
  #current: Region;
  readonly #counters: ServerCounters | undefined;
  /** When it was last published, milliseconds since 1970. */
  publishedMs = Date.now();
  /** Keys of regions that were replaced, the oldest first: to tell who is late from who guesses. */
  readonly #replaced = new Set<number>();
  readonly #listeners: ((region: Region) => void)[] = [];

  /** `counters` of what is published, for a region that counts. */
  constructor(first: Region, counters?: ServerCounters) {
    this.#current = first;
    this.#counters = counters;
    this.#count();
  }

  get current(): Region {
    return this.#current;
  }

  /** Replaces the region and tells who listens. */
  publish(next: Region): void {
    const previous = this.#current;
    if (next.rkey === previous.rkey || this.#replaced.has(next.rkey)) throw new Error('an rkey is used again');
    this.#replaced.add(previous.rkey);
    if (this.#replaced.size > RKEYS_REMEMBERED) this.#replaced.delete(this.#replaced.values().next().value!);
    this.#current = next;
    this.#count();
    for (const listener of this.#listeners) listener(next);
  }

  /** Whether a key was that of a region that is not served any more, as far as remembered. */
  wasReplaced(rkey: number): boolean {
    return this.#replaced.has(rkey);
  }

  #count(): void {
    this.publishedMs = Date.now();
    if (this.#counters === undefined) return;
    this.#counters.generations++;
    this.#counters.publishedMs = this.publishedMs;
  }

  onPublished(listener: (region: Region) => void): void {
    this.#listeners.push(listener);
  }
}
