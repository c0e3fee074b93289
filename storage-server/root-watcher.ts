/**
 * Watches what a region is made from and tells when it is time to look again: after a pause in the changes that the file
 * system tells of, and every so often in any case, for what it does not tell. Watches folders, not files (the system
 * tells of a folder's entries, and its watches are few), each before it is looked at, so that no change falls
 * between a look and its watch. Where the system can't watch, the looks come more often.
 */
import { type FSWatcher, watch } from 'node:fs';
import { basename } from 'node:path';
import { WATCH_LOOK_MS, WATCH_PATIENCE_MS, WATCH_POLL_MS, WATCH_QUIET_MS } from './limits.ts';
import type { PlaceWatcher } from './publisher.ts';

export interface RootWatcherOptions {
  /** Time between two looks in any case, milliseconds; without it that of limits.ts. */
  readonly intervalMs?: number;
  /** It is time to look. */
  readonly onDue: () => void;
  readonly log: (event: string, peer: string, detail: string) => void;
}

interface Watch {
  readonly watcher: FSWatcher;
  /** Names that matter; undefined for all. */
  names: Set<string> | undefined;
  /** Seen in the look that is running. */
  seen: boolean;
}

export class RootWatcher implements PlaceWatcher {
  readonly #options: RootWatcherOptions;
  readonly #watches = new Map<string, Watch>();
  #quiet: NodeJS.Timeout | undefined;
  #next: NodeJS.Timeout | undefined;
  /** Time of the first change that has not been looked at. */
  #changedMs: number | undefined;
  /** The system can't watch some of the folders. */
  #blind = false;
  #looking = false;
  #closed = false;

  constructor(options: RootWatcherOptions) {
    this.#options = options;
  }

  readonly onPlace = (folder: string, name?: string): void => {
    const known = this.#watches.get(folder);
    if (known !== undefined) {
      known.seen = true;
      if (name === undefined) known.names = undefined;
      else known.names?.add(name);
      return;
    }
    if (this.#closed) return;
    try {
      const watcher = watch(folder, { persistent: false }, (kind, changed) => this.#changed(folder, kind, changed));
      this.#watches.set(folder, { watcher, names: name === undefined ? undefined : new Set([name]), seen: true });
      watcher.on('error', (error) => {
        this.#drop(folder);
        this.#goBlind(folder, error);
      });
    } catch (error) {
      this.#goBlind(folder, error as Error);
    }
  };

  beginLook(): void {
    this.#looking = true;
    this.#changedMs = undefined;
    clearTimeout(this.#quiet);
    clearTimeout(this.#next);
    for (const watch of this.#watches.values()) watch.seen = false;
  }

  endLook(complete: boolean): void {
    this.#looking = false;
    if (complete) for (const [folder, { seen }] of this.#watches) if (!seen) this.#drop(folder);
    if (this.#closed) return;
    const intervalMs = this.#options.intervalMs ?? (this.#blind ? WATCH_POLL_MS : WATCH_LOOK_MS);
    clearTimeout(this.#next);
    this.#next = setTimeout(this.#options.onDue, intervalMs);
    this.#next.unref();
    // What has changed since the look began may have been too late for it.
    if (this.#changedMs !== undefined) this.poke();
  }

  /** Something has changed: a look is due after a pause, or when changes have gone on for long. */
  poke(): void {
    if (this.#closed) return;
    const nowMs = performance.now();
    this.#changedMs ??= nowMs;
    if (this.#looking) return;
    const leftMs = this.#changedMs + WATCH_PATIENCE_MS - nowMs;
    clearTimeout(this.#quiet);
    this.#quiet = setTimeout(this.#options.onDue, Math.max(0, Math.min(WATCH_QUIET_MS, leftMs)));
    this.#quiet.unref();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#quiet);
    clearTimeout(this.#next);
    for (const folder of [...this.#watches.keys()]) this.#drop(folder);
  }

  #changed(folder: string, kind: string, name: string | null): void {
    const watch = this.#watches.get(folder);
    if (watch === undefined) return;
    // Its own name: the folder itself may be gone or another one, and a watch on it would stay silent.
    if (kind === 'rename' && name === basename(folder)) this.#drop(folder);
    else if (name !== null && watch.names?.has(name) === false) return;
    this.poke();
  }

  #drop(folder: string): void {
    this.#watches.get(folder)?.watcher.close();
    this.#watches.delete(folder);
  }

  #goBlind(folder: string, error: Error): void {
    // One that is gone is no fault of the system's; its folder above tells.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    if (!this.#blind) {
      const how = `looking every ${(this.#options.intervalMs ?? WATCH_POLL_MS) / 1000} s`;
      this.#options.log('watch', '', `the system can't watch ${folder} (${error.message}): ${how}`);
    }
    this.#blind = true;
  }
}
