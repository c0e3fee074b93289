/**
 * The main thread's side of a mount: starts the mount thread, hands on what it says, and is the last guard: whatever
 * becomes of that thread, the folder is taken away before this process ends.
 */
import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { addRecorded, type MetricsRegistry, type RecordedSample } from '../../metrics/index.ts';
import { type Libc, loadLibc, MOUNT_TYPE, mountAt, probeMount, unmountFolder } from '../../vfs/fuse/index.ts';
import { MountError } from '../../vfs/index.ts';
import { CommandError } from '../errors.ts';
import type { Log } from '../log.ts';
import { collectGarbage, keepHeapsSmall } from './garbage.ts';
import { ANSWER_MS, FIGURES_MS, MOUNT_YOUNG_MEBIBYTES, UNMOUNT_MARGIN_MS } from './limits.ts';
import type { FromMount, MountEnd, MountFacts, MountSettings, ToMount } from './mount-messages.ts';
import { revivedError } from './posted-error.ts';

export class MountProcess {
  readonly facts: MountFacts;
  /** Nothing is mounted any more. Rejects when the thread failed. */
  readonly ended: Promise<MountEnd>;
  readonly #thread: Thread;

  private constructor(thread: Thread, facts: MountFacts) {
    this.#thread = thread;
    this.facts = facts;
    this.ended = thread.ended.promise;
  }

  /** Mounts, and resolves when the mount answers. Throws what keeps it from that; then nothing is mounted. */
  static async start(settings: MountSettings, log: Log, signal: AbortSignal): Promise<MountProcess> {
    const libc = await loadLibc();
    libc.keepHeapSmall();
    const thread = new Thread(settings, log, libc);
    const giveUp = (): void => thread.post({ kind: 'unmount', graceMs: 0 });
    signal.addEventListener('abort', giveUp, { once: true });
    if (signal.aborted) giveUp();
    try {
      const facts = await thread.ready.promise;
      keepHeapsSmall();
      collectGarbage();
      await awaitAnswer(facts.folder, thread);
      if (signal.aborted) {
        await thread.ended.promise;
        throw new CommandError('INTERRUPTED', 'interrupted');
      }
      return new MountProcess(thread, facts);
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  /** Adds the thread's figures to every scrape. */
  addTo(registry: MetricsRegistry): void {
    let samples: readonly RecordedSample[] = [];
    registry.addPreparation(async () => {
      samples = (await this.#thread.figures()) ?? samples;
    });
    registry.addCollector((into) => addRecorded(samples, into));
  }

  /** Unmounts within about `graceMs`; a thread that does not manage it is left behind, and the folder detached. */
  async unmount(graceMs: number): Promise<MountEnd | undefined> {
    this.#thread.post({ kind: 'unmount', graceMs });
    const late = new AbortController();
    const end = await Promise.race([
      this.ended,
      sleep(graceMs + UNMOUNT_MARGIN_MS, undefined, { signal: late.signal }).catch(() => undefined),
    ]);
    late.abort();
    if (end === undefined) await this.#thread.leave();
    return end;
  }
}

/** The worker, and what it has said. */
class Thread {
  readonly ready = Promise.withResolvers<MountFacts>();
  readonly ended = Promise.withResolvers<MountEnd>();
  readonly #worker: Worker;
  readonly #log: Log;
  readonly #libc: Libc;
  readonly #figures = new Map<number, (samples: readonly RecordedSample[]) => void>();
  #nextFigures = 1;
  #folder: string | undefined;
  /** Nothing is mounted any more, or never was. */
  isOver = false;

  constructor(settings: MountSettings, log: Log, libc: Libc) {
    this.#log = log;
    this.#libc = libc;
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    this.#worker = new Worker(new URL(`./mount-thread.${extension}`, import.meta.url), {
      workerData: settings,
      resourceLimits: { maxYoungGenerationSizeMb: MOUNT_YOUNG_MEBIBYTES },
    });
    this.#worker.on('message', (message: FromMount) => this.#receive(message));
    this.#worker.on('error', (error) => this.#fail(error instanceof Error ? error : new Error(String(error))));
    this.#worker.on('exit', (code) => this.#fail(new Error(`the mount thread ended with code ${code}`)));
    this.ended.promise.catch(() => {});
    this.ready.promise.catch(() => {});
    process.on('exit', this.#onExit);
  }

  post(message: ToMount): void {
    this.#worker.postMessage(message);
  }

  /** undefined when the thread does not answer in time. */
  async figures(): Promise<readonly RecordedSample[] | undefined> {
    const id = this.#nextFigures++;
    const { promise, resolve } = Promise.withResolvers<readonly RecordedSample[] | undefined>();
    this.#figures.set(id, resolve);
    const timer = setTimeout(() => resolve(undefined), FIGURES_MS);
    this.post({ kind: 'figures', id });
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      this.#figures.delete(id);
    }
  }

  /** Goes on without the thread: takes its mount away. */
  async leave(): Promise<void> {
    this.#log.error({}, 'the mount thread does not end: its mount is taken away');
    if (this.#folder !== undefined) await unmountFolder(this.#folder, { graceMs: 0 }).catch(() => {});
  }

  #receive(message: FromMount): void {
    switch (message.kind) {
      case 'log':
        this.#log[message.level](message.fields, message.text);
        return;
      case 'ready':
        this.#folder = message.facts.folder;
        this.ready.resolve(message.facts);
        return;
      case 'figures':
        this.#figures.get(message.id)?.(message.samples);
        return;
      case 'failed':
        this.#over();
        this.ready.reject(revivedError(message.error));
        this.ended.reject(revivedError(message.error));
        return;
      case 'ended':
        this.#over();
        this.ended.resolve(message.end);
    }
  }

  /** The thread has died: its descriptor may still be open in this process, and readers would wait. */
  #fail(error: Error): void {
    if (this.isOver) return;
    detachNow(this.#folder);
    this.#over();
    this.ready.reject(error);
    this.ended.reject(error);
  }

  #over(): void {
    this.isOver = true;
    process.off('exit', this.#onExit);
  }

  /** The process ends while the thread is at work: taking that apart now would crash both (device.ts). */
  readonly #onExit = (code: number): void => {
    detachNow(this.#folder);
    this.#libc.exit(code);
  };
}

/** Takes a mount away within this call: a process that ends has no other time. */
function detachNow(folder: string | undefined): void {
  if (folder === undefined || mountAt(folder)?.type !== MOUNT_TYPE) return;
  const asRoot = process.geteuid?.() === 0;
  const [program, ...options] = asRoot ? ['umount', '-l'] : ['fusermount3', '-u', '-z'];
  spawnSync(program!, [...options, folder], { stdio: 'ignore', timeout: ANSWER_MS });
}

/**
 * Asks the mount something as any program would, and in one: a question of this process that stays without an answer
 * would keep it from ending.
 */
async function awaitAnswer(folder: string, thread: Thread): Promise<void> {
  const health = await probeMount(folder, ANSWER_MS);
  if (health === 'alive' || thread.isOver) return;
  await thread.leave();
  throw new MountError('TIMEOUT', `the mount at ${folder} does not answer (${health})`);
}
