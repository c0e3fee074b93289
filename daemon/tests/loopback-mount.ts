/**
 * A mount of local files as the mount thread composes it (mount/mounted-source.ts), on the loopback kernel in place of a
 * device: the same source, contents, stores, decoder threads and session.
 */
import { Pool } from '../../decode/index.ts';
import { DiskCache, FetchError, ledgerTotal } from '../../fetcher/index.ts';
import type { TreeFile } from '../../vfs/fuse/index.ts';
import { LoopbackKernel } from '../../vfs/fuse/loopback.ts';
import { FuseSession } from '../../vfs/fuse/session.ts';
import { openSource, type Source } from '../../vfs/index.ts';
import type { SeededRandom } from '../../vfs/tests/seeded-random.ts';
import { MountContents } from '../mount/mount-contents.ts';
import { SourceTree } from '../mount/source-tree.ts';
import type { View } from '../mount/view.ts';
import { ScanEngine } from '../scan/engine.ts';
import { TroubledTransport } from './troubled-transport.ts';

export interface LoopbackOptions {
  readonly folder: string;
  readonly view: View;
  readonly memoryBytes: number;
  readonly cacheFolder?: string;
  readonly prefetchDepth: number;
  readonly random: SeededRandom;
}

/** Milliseconds without progress after which a source counts as lost, in these tests. */
const STALL_MS = 500;

export class LoopbackMount {
  readonly kernel = new LoopbackKernel();
  readonly problems: string[] = [];
  readonly session: FuseSession;
  readonly contents: MountContents;
  readonly transport: TroubledTransport;
  readonly pool: Pool;
  readonly #idleBytes: number;
  readonly #source: Source;
  readonly #tree: SourceTree;
  readonly #engine: ScanEngine | undefined;
  readonly #diskCache: DiskCache | undefined;

  private constructor(
    { view, memoryBytes, prefetchDepth }: LoopbackOptions,
    parts: { source: Source; tree: SourceTree; transport: TroubledTransport; diskCache: DiskCache | undefined },
    first: Parameters<FuseSession['replaceTree']>[0],
  ) {
    const { source, tree, transport, diskCache } = parts;
    this.#source = source;
    this.#tree = tree;
    this.transport = transport;
    this.#diskCache = diskCache;
    this.#engine = view === 'decoded' ? new ScanEngine({ memoryBytes, decoders: 1 }) : undefined;
    this.pool = this.#engine?.pool ?? Pool.create(memoryBytes);
    this.#idleBytes = this.pool.usedBytes;
    this.contents = new MountContents({
      source,
      pool: this.pool,
      engine: this.#engine,
      view,
      prefetchDepth,
      maxGap: 'auto',
      versionOf: (file: TreeFile) => tree.versionOf(file),
      push: async () => true,
      onDepth: () => {},
    });
    this.session = new FuseSession({
      binding: this.kernel,
      tree: first,
      contents: this.contents.contentOf,
      notify: () => {},
      onProblem: (text) => void this.problems.push(text),
      isDying: () => true,
    });
  }

  static async start(options: LoopbackOptions): Promise<LoopbackMount> {
    const { folder, view, cacheFolder, random } = options;
    const diskCache =
      cacheFolder === undefined ? undefined : await DiskCache.open({ folder: cacheFolder, bytes: 64 << 20 });
    let transport: TroubledTransport | undefined;
    const source = await openSource(folder, {
      stallMs: STALL_MS,
      retry: { attempts: 2, baseMs: 1, capMs: 10, budget: 1000 },
      wrap: (inner) => {
        transport = new TroubledTransport(inner, random);
        return transport;
      },
      ...(diskCache === undefined ? {} : { diskCache }),
    });
    const tree = new SourceTree(source, view);
    const mount = new LoopbackMount(options, { source, tree, transport: transport!, diskCache }, await tree.begin());
    await mount.kernel.init();
    await mount.session.ready;
    return mount;
  }

  /** Mounts what is in the source now, which is not nothing. */
  async look(): Promise<void> {
    const tree = await this.#tree.begin();
    // a look that finds what is mounted already names no files
    if (tree.files.length > 0) this.session.replaceTree(tree);
  }

  /** Bytes of the pool that are in use beyond those of a mount that nobody has read. */
  get heldBytes(): number {
    return this.pool.usedBytes - this.#idleBytes;
  }

  /** Bytes that came over the wire and that the account does not know of, once nothing is held. */
  get undecidedBytes(): number {
    const { counters, footers } = this.#source;
    const came = counters.bytesOnWire + counters.bytesCached - counters.bytesDirectory - counters.bytesDiscarded;
    return came - footers.bytes - ledgerTotal(this.contents.store.ledger);
  }

  async close(): Promise<void> {
    this.kernel.end();
    await this.session.ended;
    this.contents.close(new FetchError('CLOSED', 'the test ends'));
    await this.#source.close();
    await this.#diskCache?.close();
    await this.#engine?.close();
  }
}
