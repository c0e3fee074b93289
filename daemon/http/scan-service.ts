/** What requests share: the engine with its memory, the sources, the settings that hold now, and the scans under way. */
import type { Settings } from '../config/schema.ts';
import type { ScanEngine } from '../scan/engine.ts';
import { HttpError } from './http-error.ts';
import { RETRY_AFTER_S } from './limits.ts';
import type { NamedSources } from './named-sources.ts';

/** A scan that was let in. */
export interface RunningScan {
  readonly signal: AbortSignal;
  /** The daemon ended it. */
  readonly isStopped: boolean;
  abort(): void;
  /** Must be called once, when nothing of it is left. */
  end(): void;
}

export class ScanService {
  readonly engine: ScanEngine;
  readonly sources: NamedSources;
  /** Replaced by a reload. */
  settings: Settings;
  readonly #running = new Set<() => void>();
  #stopping = false;
  #onIdle: (() => void) | undefined;

  constructor(engine: ScanEngine, sources: NamedSources, settings: Settings) {
    this.engine = engine;
    this.sources = sources;
    this.settings = settings;
  }

  get running(): number {
    return this.#running.size;
  }

  get isStopping(): boolean {
    return this.#stopping;
  }

  /** Throws HttpError BUSY or STOPPING. */
  admit(): RunningScan {
    if (this.#stopping) throw new HttpError('STOPPING', 'the daemon is about to end');
    const { maxScans } = this.settings;
    if (this.#running.size >= maxScans) {
      const headers = { 'Retry-After': String(RETRY_AFTER_S) };
      throw new HttpError('BUSY', `${maxScans} scans are under way, which is as many as there may be`, { headers });
    }
    const controller = new AbortController();
    let stopped = false;
    const stop = (): void => {
      stopped = true;
      controller.abort();
    };
    this.#running.add(stop);
    return {
      signal: controller.signal,
      get isStopped() {
        return stopped;
      },
      abort: () => controller.abort(),
      end: () => {
        this.#running.delete(stop);
        if (this.#running.size === 0) this.#onIdle?.();
      },
    };
  }

  /** Lets no scan in any more, and resolves when those under way have ended; after `withinMs` they are ended. */
  async drain(withinMs: number): Promise<{ readonly cut: number }> {
    this.#stopping = true;
    if (this.#running.size === 0) return { cut: 0 };
    const idle = new Promise<void>((resolve) => {
      this.#onIdle = resolve;
    });
    let cut = 0;
    const timer = setTimeout(() => {
      cut = this.#running.size;
      for (const stop of this.#running) stop();
    }, withinMs);
    await idle;
    clearTimeout(timer);
    return { cut };
  }
}
