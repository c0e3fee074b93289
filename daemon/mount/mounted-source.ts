/**
 * A source mounted on a folder, whole: transport, pool, decoder threads, contents, FUSE session, and the watch for new
 * generations. Lives in the mount thread, so that nothing but reads of the mount keeps reads of the mount waiting.
 */
import { Pool } from '../../decode/index.ts';
import { DiskCache, FetchError } from '../../fetcher/index.ts';
import { type RecordedSample, SampleRecorder } from '../../metrics/index.ts';
import {
  loadLibc,
  type MountedTree,
  mountTree,
  REQUEST_ANSWER_MS,
  type TreeFile,
  type Unmounted,
} from '../../vfs/fuse/index.ts';
import { MountError, openSource, type Source } from '../../vfs/index.ts';
import type { Log } from '../log.ts';
import { ClientMetrics } from '../scan/client-metrics.ts';
import { ScanEngine } from '../scan/engine.ts';
import { logEvents } from '../source-log.ts';
import { ANSWER_STALLS, LOOK_MS, PRESENT_BYTES } from './limits.ts';
import { MountContents } from './mount-contents.ts';
import { type MountParts, mountCollector, reportOf } from './mount-figures.ts';
import type { MountEnd, MountFacts, MountSettings } from './mount-messages.ts';
import { deviceOf, refuseCacheInMount, refuseOwnMount } from './own-mount.ts';
import { PagePushThread } from './page-push.ts';
import { postError } from './posted-error.ts';
import { SourceTree, tellingOfChanges } from './source-tree.ts';
import { warmUp } from './warm-up.ts';

/** A log whose lines go elsewhere. */
export type MountLog = Pick<Log, 'debug' | 'info' | 'warn' | 'error'>;

export class MountedSource {
  readonly facts: MountFacts;
  /** Nothing is mounted any more, by whomever that was brought about. Never rejects. */
  readonly ended: Promise<MountEnd>;
  readonly #parts: MountParts;
  readonly #mounted: MountedTree;
  readonly #recorder = new SampleRecorder();
  readonly #over = Promise.withResolvers<MountEnd>();
  #isEnding = false;
  #unmounting: Promise<void> | undefined;

  private constructor(settings: MountSettings, parts: MountParts, mounted: MountedTree) {
    this.#parts = parts;
    this.#mounted = mounted;
    const { tree, source, engine, contents } = parts;
    this.facts = {
      folder: mounted.folder,
      source: settings.url,
      view: settings.view,
      files: tree.files,
      bytes: tree.bytes,
      generation: tree.generation,
      cleared: mounted.cleared,
    };
    const metrics = new ClientMetrics(this.#recorder);
    metrics.addSource(source);
    metrics.addLedger(contents.store.ledger);
    if (engine !== undefined) metrics.addEngine(engine);
    this.#recorder.addCollector(mountCollector(parts));
    this.ended = this.#over.promise;
    void mounted.session.ended.then((error) => {
      if (this.#unmounting === undefined) return this.#end('unmounted', true, error);
      return undefined;
    });
  }

  /**
   * Opens the source and mounts it. Throws FetchError when the source can't be listed, MountError, and CommandError for
   * a mount of itself; nothing is mounted then. Aborting the signal gives up.
   */
  static async open(settings: MountSettings, log: MountLog, signal: AbortSignal): Promise<MountedSource> {
    const cleanups: (() => unknown)[] = [];
    try {
      return await MountedSource.#open(settings, log, signal, cleanups);
    } catch (error) {
      for (const clean of cleanups.reverse()) await clean();
      throw error;
    }
  }

  static async #open(
    settings: MountSettings,
    log: MountLog,
    signal: AbortSignal,
    cleanups: (() => unknown)[],
  ): Promise<MountedSource> {
    const { view, folder, prefetchDepth, maxGap, allowOther } = settings;
    const changed = { look: (): void => {} };
    const diskCache = await openDiskCache(settings, log);
    cleanups.push(() => diskCache?.close());
    const source = await openMountSource(settings, diskCache, log, () => changed.look());
    cleanups.push(() => source.close());
    const close = (): void => void source.close().catch(() => {});
    signal.addEventListener('abort', close, { once: true });
    if (signal.aborted) close();
    await refuseOwnMount(source, folder);
    const tree = new SourceTree(source, view);
    cleanups.push(() => tree.close());
    const first = await tree.begin();
    const { pool, engine } = makePool(settings);
    cleanups.push(() => engine?.close());
    await (await loadLibc()).populate(pool.u8.subarray(0, Math.min(PRESENT_BYTES, pool.capacityBytes / 2)));
    await warmUp({ pool, engine, view }).then(
      (warmedUp) => log.debug(warmedUp, 'warmed up'),
      (error: unknown) =>
        log.warn({ err: error }, 'what a mount consists of did not read the file that it begins with'),
    );
    let pushThread: PagePushThread | undefined;
    let mounted: MountedTree | undefined;
    const contents = new MountContents({
      source,
      pool,
      engine,
      view,
      prefetchDepth,
      maxGap,
      plain: settings.plain,
      versionOf: (file) => tree.versionOf(file),
      push: async (file, offset, bytes) => {
        // the inode of just this version: numbers are never used again, so that a later one can't be meant
        const id = mounted?.session.nodeIdOf(file.path);
        if (id === undefined || !isCurrent(current, file)) return false;
        pushThread ??= new PagePushThread(mounted!.descriptor, pool.memory);
        return pushThread.push(id, offset, bytes);
      },
      onDepth: (depth, reason) => log.debug({ depth, reason }, 'prefetch depth'),
    });
    let current = byPath(first.files);
    cleanups.push(() => contents.close(new FetchError('CLOSED', 'the mount did not come to be')));
    mounted = await mountTree({
      folder,
      source: settings.url,
      tree: first,
      contents: contents.contentOf,
      ...(allowOther === undefined ? {} : { allowOther }),
      onProblem: (text) => log.warn({}, text),
      answerMs: Math.max(REQUEST_ANSWER_MS, ANSWER_STALLS * (settings.access.stallMs ?? 0)),
      beforeClose: async () => {
        contents.pusher?.close();
        await pushThread?.idle();
        pushThread?.close();
      },
    });
    signal.removeEventListener('abort', close);
    const { session } = mounted;
    tree.ownDevice = deviceOf(mounted.folder);
    changed.look = () => tree.look();
    const lookMs = settings.lookMs ?? LOOK_MS[source.location.scheme];
    tree.follow(lookMs, {
      changed(next) {
        const change = session.replaceTree(next);
        current = byPath(next.files);
        const { generation, added, removed, leftOut } = change;
        log.info({ generation, added, removed, changed: change.changed }, 'the source has changed');
        for (const { path, why } of leftOut) log.warn({ path, why }, 'left out');
      },
      failed: (error) => log.warn({ err: error }, 'the source can not be listed; what is mounted stays as it is'),
      recovered: () => log.info({}, 'the source can be listed again'),
    });
    const sinceMs = performance.now();
    return new MountedSource(settings, { view, sinceMs, session, tree, contents, source, pool, engine }, mounted);
  }

  /** What the registry of another thread adds to a scrape. */
  samples(): RecordedSample[] {
    return this.#recorder.record();
  }

  /**
   * Unmounts within about `graceMs`: readers may finish for half of that time, then what waits is answered with
   * ENOTCONN, at last the folder is taken away from under those who have files open. `ended` follows.
   */
  unmount(graceMs: number): Promise<void> {
    this.#unmounting ??= this.#unmount(graceMs);
    return this.#unmounting;
  }

  async #unmount(graceMs: number): Promise<void> {
    this.#parts.contents.pusher?.close();
    let how: Unmounted = 'detached';
    let problem: unknown;
    try {
      how = await this.#mounted.unmount(graceMs);
    } catch (error) {
      problem = error;
    }
    await this.#end(how, false, problem);
  }

  async #end(how: Unmounted, byOthers: boolean, error: unknown): Promise<void> {
    if (this.#isEnding) return;
    this.#isEnding = true;
    const { source, engine, tree, contents } = this.#parts;
    tree.close();
    contents.close(new MountError('STOPPED', 'the mount ends'));
    await source.close().catch(() => {});
    await source.diskCache?.close();
    const report = reportOf(this.#parts);
    await engine?.close();
    this.#over.resolve({ how, byOthers, error: error === undefined ? undefined : postError(error), report });
  }
}

/** Throws CommandError USAGE for a folder that the mount would hide, and read from itself. */
async function openDiskCache({ diskCache, folder }: MountSettings, log: MountLog): Promise<DiskCache | undefined> {
  if (diskCache === undefined) return undefined;
  await refuseCacheInMount(diskCache.folder, folder);
  return DiskCache.open({ ...diskCache, onTrouble: (reason) => log.warn({}, reason) });
}

function openMountSource(
  settings: MountSettings,
  diskCache: DiskCache | undefined,
  log: MountLog,
  look: () => void,
): Promise<Source> {
  const { url, workingFolder, access } = settings;
  return openSource(url, {
    workingFolder,
    onEvent: logEvents(log),
    onSkipped: (path, reason) => log.debug({ path, reason }, 'skipped'),
    onGeneration: look,
    wrap: (inner) => tellingOfChanges(inner, look),
    ...(diskCache === undefined ? {} : { diskCache }),
    ...access,
    onUnpinned: (path, reason) => log.warn({ path }, reason),
    onTransport: (text, outcome) => log[outcome === 'no device' ? 'debug' : 'info']({}, text),
  });
}

/** The raw view needs no decoder threads. */
function makePool({ view, memoryBytes, decoders, verifyChecksums }: MountSettings): {
  pool: Pool;
  engine: ScanEngine | undefined;
} {
  if (view === 'raw') return { pool: Pool.create(memoryBytes), engine: undefined };
  const engine = new ScanEngine({ memoryBytes, decoders, verifyChecksums });
  return { pool: engine.pool, engine };
}

function byPath(files: readonly TreeFile[]): Map<string, TreeFile> {
  return new Map(files.map((file) => [file.path, file]));
}

function isCurrent(current: ReadonlyMap<string, TreeFile>, { path, etag }: TreeFile): boolean {
  return current.get(path)?.etag === etag;
}
