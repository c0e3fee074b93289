/**
 * The disk cache: bytes that it has against the same bytes of a plain local file, both in the kernel's page cache, each
 * read into shared memory, checksums and all; and what a scan over loopback costs with an empty cache that keeps what
 * comes, and with a full one, against the same scan without. Server and client are processes of their own.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { Scan, ScanEngine } from '../daemon/index.ts';
import { DiskCache, openTransport } from '../fetcher/index.ts';
import { openSource } from '../vfs/index.ts';
import { lineitemFile } from './make-lineitem.ts';
import { cpuMs, startPeer } from './peer-process.ts';
import { alternate, type BenchOptions, type BenchResult, formatTable, median, RUNS, sum } from './result.ts';
import type { ServerQuestion } from './scan-server.ts';

const ROWS = { small: 200_000, full: 4_000_000 } as const;
/** Bytes of a sequential read: a large request of a scan. */
const REQUEST_BYTES = 8 << 20;
const RANDOM_BYTES = 64 << 10;
const RANDOM_READS = { small: 100, full: 2000 } as const;

export async function benchCache(options: BenchOptions = {}): Promise<BenchResult> {
  const size = options.small ? 'small' : 'full';
  const file = await lineitemFile({ rows: options.rows ?? ROWS[size] });
  await using server = startPeer('./scan-server.ts');
  const port = await server.ask<number>({ kind: 'serve', file } satisfies ServerQuestion);
  const url = `rdma://127.0.0.1:${port}/`;
  const folder = mkdtempSync(join(tmpdir(), 'qanat-bench-cache-'));
  try {
    const hits = await measureHits(url, file, join(folder, 'hits'), RUNS[size], RANDOM_READS[size]);
    const scans = await measureScans(url, folder, RUNS[size]);
    return {
      table: formatTable([
        ['', 'plain file', 'disk cache'],
        ['sequential, GB/s', hits.plain.toFixed(2), hits.cached.toFixed(2)],
        ['64 KiB at random, median in µs', hits.plainRandomUs.toFixed(0), hits.cachedRandomUs.toFixed(0)],
        ['', 'scan without', 'into an empty cache', 'from a full one'],
        ['wall, ms', ...scans.map(({ wallMs }) => wallMs.toFixed(0))],
        ["client's processor time, ms", ...scans.map(({ cpu }) => cpu.toFixed(0))],
      ]),
      ratios: {
        'cache.sequential': hits.cached / hits.plain,
        'cache.random.time': hits.cachedRandomUs / hits.plainRandomUs,
        'cache.cold.wall': scans[1]!.wallMs / scans[0]!.wallMs,
        'cache.cold.cpu': scans[1]!.cpu / scans[0]!.cpu,
        'cache.warm.wall': scans[2]!.wallMs / scans[0]!.wallMs,
      },
      details: { fileBytes: statSync(file).size, hits, scans },
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function measureHits(url: string, path: string, folder: string, rounds: number, randomReads: number) {
  const cache = await DiskCache.open({ folder, bytes: 2 ** 40 });
  const { transport } = await openTransport(url, { diskCache: cache });
  const [version] = await transport.list('');
  const { length } = version!;
  const pages = REQUEST_BYTES / 65_536;
  const into = new Uint8Array(new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true }).buffer);
  const plain = await open(path);
  const readPlain = async (start: number, end: number): Promise<void> => {
    const { bytesRead } = await plain.read(into, 0, end - start, start);
    if (bytesRead !== end - start) throw new Error(`${bytesRead} bytes at ${start}`);
  };
  const readCached = (start: number, end: number): Promise<void> =>
    transport.read(version!, start, into.subarray(0, end - start));

  const sequential = async (read: (start: number, end: number) => Promise<void>): Promise<number> => {
    const began = performance.now();
    for (let start = 0; start < length; start += REQUEST_BYTES) {
      await read(start, Math.min(length, start + REQUEST_BYTES));
    }
    return length / (performance.now() - began) / 1e6;
  };
  const random = async (read: (start: number, end: number) => Promise<void>): Promise<number> => {
    const times: number[] = [];
    for (let k = 0; k < randomReads; k++) {
      const start = Math.floor(Math.random() * (length - RANDOM_BYTES));
      const began = performance.now();
      await read(start, start + RANDOM_BYTES);
      times.push((performance.now() - began) * 1000);
    }
    return median(times);
  };
  for (let start = 0; start < length; start += REQUEST_BYTES) {
    await readCached(start, Math.min(length, start + REQUEST_BYTES));
    await cache.settled();
  }
  const { misses, partial } = cache.counters;
  const samples = await alternate(rounds, {
    plain: () => sequential(readPlain),
    cached: () => sequential(readCached),
    plainRandomUs: () => random(readPlain),
    cachedRandomUs: () => random(readCached),
  });
  if (cache.counters.misses + cache.counters.partial > misses + partial) throw new Error('not all was in the cache');
  await plain.close();
  await transport.close();
  await cache.close();
  return {
    plain: median(samples.plain),
    cached: median(samples.cached),
    plainRandomUs: median(samples.plainRandomUs),
    cachedRandomUs: median(samples.cachedRandomUs),
  };
}

interface ScanFigures {
  readonly wallMs: number;
  readonly cpu: number;
  readonly dropped: number;
}

/** Without a cache, with an empty one, with a full one. */
async function measureScans(url: string, folder: string, rounds: number): Promise<ScanFigures[]> {
  const engine = new ScanEngine({ memoryBytes: 256 << 20, decoders: 1 });
  const scanAll = async (cacheFolder: string | undefined, mayMiss: boolean): Promise<ScanFigures> => {
    const diskCache =
      cacheFolder === undefined ? undefined : await DiskCache.open({ folder: cacheFolder, bytes: 2 ** 40 });
    const cpu = cpuMs();
    const began = performance.now();
    const source = await openSource(url, diskCache === undefined ? {} : { diskCache });
    const scan = await Scan.open(engine, source, {});
    let rows = 0;
    for await (const { numRows } of scan) rows += numRows;
    if (rows !== scan.report().rows) throw new Error(`${rows} rows`);
    const wallMs = performance.now() - began;
    await source.close();
    await diskCache?.close();
    const counters = diskCache?.counters;
    if (!mayMiss && counters !== undefined && counters.misses > 0) throw new Error('not all was in the cache');
    return { wallMs, cpu: cpuMs() - cpu, dropped: counters?.dropped ?? 0 };
  };
  const full = join(folder, 'full');
  let empty = 0;
  // what was dropped the first time is kept the next time
  for (let round = 0; round < 20 && (await scanAll(full, true)).dropped > 0; round++);
  const kept: Record<string, ScanFigures[]> = { none: [], empty: [], full: [] };
  const side = (name: string, act: () => Promise<ScanFigures>) => async (): Promise<number> => {
    const figures = await act();
    kept[name]!.push(figures);
    return figures.wallMs;
  };
  await alternate(rounds, {
    none: side('none', () => scanAll(undefined, true)),
    empty: side('empty', () => scanAll(join(folder, `empty-${empty++}`), true)),
    full: side('full', () => scanAll(full, false)),
  });
  await engine.close();
  return Object.values(kept).map((figures) => ({
    wallMs: median(figures.map(({ wallMs }) => wallMs)),
    cpu: median(figures.map(({ cpu }) => cpu)),
    dropped: sum(figures.map(({ dropped }) => dropped)),
  }));
}
