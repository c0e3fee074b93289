/**
 * The client of the scan benchmark, in a process of its own: whole scans, and their halves. `fetch` brings the same
 * planned ranges into the pool and drops them; `decode` runs the same chunks, in memory beforehand, through the same
 * decoder streams and drops the segments. Row groups in flight are as many as in a scan.
 */
import { createHash, type Hash } from 'node:crypto';
import { openSource, Scan, ScanEngine, type Source } from '../daemon/index.ts';
import { canonicalLines } from '../daemon/output/canonical-text.ts';
import { batchRanges } from '../daemon/scan/slots.ts';
import type { Flow } from '../daemon/scan/streams.ts';
import type { ChunkSpec, FileMetadata } from '../decode/index.ts';
import { type FileVersion, newLedger, PREFETCH_DEPTH_DEFAULT, RangeFetch, type ScanPlan } from '../fetcher/index.ts';
import { chunkSpec } from './decode-ours.ts';
import { answerQuestions, cpuMs } from './peer-process.ts';

export type ClientQuestion =
  | { readonly kind: 'open'; readonly url: string; readonly memoryBytes: number; readonly profiler: boolean }
  | { readonly kind: 'scan'; readonly arrow: boolean }
  | { readonly kind: 'digest' }
  | { readonly kind: 'fetch' }
  | { readonly kind: 'decode' };

export interface Opened {
  readonly decoders: number;
  readonly rowGroups: number;
  readonly requests: number;
}

export interface ScanFigures {
  readonly wallMs: number;
  /** Of this process. */
  readonly cpuMs: number;
  readonly rows: number;
  readonly batches: number;
  readonly waitedMs: number;
  readonly decodeMs: number;
  readonly peakMemoryBytes: number;
}

interface Client {
  readonly engine: ScanEngine;
  readonly source: Source;
  readonly file: FileVersion;
  readonly metadata: FileMetadata;
  readonly plan: ScanPlan;
}

let client: Client | undefined;

answerQuestions<ClientQuestion>(async (question) => {
  if (question.kind === 'open') return await open(question);
  if (client === undefined) throw new Error('not open');
  switch (question.kind) {
    case 'scan':
      return await scan(client, question.arrow);
    case 'digest':
      return await digest(client);
    case 'fetch':
      return await fetchAlone(client);
    case 'decode':
      return await decodeAlone(client);
  }
});

async function open({ url, ...options }: ClientQuestion & { readonly kind: 'open' }): Promise<Opened> {
  const engine = new ScanEngine(options);
  const source = await openSource(url);
  const file = (await source.list())[0]!;
  const metadata = await (await source.open(file)).footer();
  const probe = await Scan.open(engine, source);
  const { plan } = probe;
  await probe.close();
  client = { engine, source, file, metadata, plan };
  return {
    decoders: engine.streams.count,
    rowGroups: plan.rowGroups.length,
    requests: plan.rowGroups.reduce((total, group) => total + group.fetches.length, 0),
  };
}

const busyMs = ({ engine }: Client): number => engine.streams.busyMs().reduce((total, one) => total + one, 0);

async function scan(client: Client, arrow: boolean): Promise<ScanFigures> {
  const cpu = cpuMs();
  const busy = busyMs(client);
  const began = performance.now();
  const run = await Scan.open(client.engine, client.source);
  let rows = 0;
  for (let batch = await run.nextBatch(); batch !== undefined; batch = await run.nextBatch()) {
    rows += arrow ? run.toArrow(batch).numRows : batch.rows;
    batch.release();
  }
  const wallMs = performance.now() - began;
  const used = cpuMs() - cpu;
  const { batches, waitedMs, peakMemoryBytes } = run.report();
  await run.close();
  return { wallMs, cpuMs: used, rows, batches, waitedMs, decodeMs: busyMs(client) - busy, peakMemoryBytes };
}

/** SHA-256 of every column's canonical texts, by name. */
async function digest({ engine, source }: Client): Promise<Record<string, string>> {
  const hashes = new Map<string, Hash>();
  const run = await Scan.open(engine, source);
  for (let batch = await run.nextBatch(); batch !== undefined; batch = await run.nextBatch()) {
    const ranges = batchRanges(batch);
    for (const field of run.fields) {
      const { name } = field;
      if (!hashes.has(name)) hashes.set(name, createHash('sha256'));
      const hash = hashes.get(name)!;
      for (const lines of canonicalLines(engine.pool, field, ranges)) hash.update(lines);
    }
    batch.release();
  }
  return Object.fromEntries([...hashes].map(([name, hash]) => [name, hash.digest('hex')]));
}

/** Runs `work` for every row group, some at a time, in their order. */
async function overRowGroups({ plan }: Client, work: (group: number) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < plan.rowGroups.length) await work(next++);
  };
  await Promise.all(Array.from({ length: PREFETCH_DEPTH_DEFAULT }, lane));
}

async function fetchAlone(client: Client): Promise<number> {
  const { engine, source, file, plan } = client;
  const ledger = newLedger();
  const { signal } = new AbortController();
  const began = performance.now();
  await overRowGroups(client, async (group) => {
    const fetches = plan.rowGroups[group]!.fetches.map(async (range) => {
      const part = { start: range.start, end: range.end, arrived: () => {} };
      const fetch = RangeFetch.start({
        pool: engine.pool,
        ledger,
        transport: source.transport,
        file,
        range,
        parts: [part],
        signal,
        onFreed: () => {},
      });
      if (fetch === undefined) throw new Error('no memory for a request');
      const error = await fetch.done;
      if (error !== undefined) throw error;
      fetch.release(part, range.end - range.start, 'speculation');
    });
    await Promise.all(fetches);
  });
  return performance.now() - began;
}

async function decodeAlone(client: Client): Promise<number> {
  const { engine, source, file, metadata, plan } = client;
  const { pool } = engine;
  const chunks: { spec: ChunkSpec; slab: number }[][] = [];
  for (const group of plan.rowGroups) {
    const specs = metadata.leaves.map((leaf) => chunkSpec(metadata, leaf, group.ordinal, 'values'));
    const loaded: { spec: ChunkSpec; slab: number }[] = [];
    for (const spec of specs) {
      const slab = pool.allocate(spec.byteLength);
      if (slab === 0) throw new Error('no memory for all chunks at once');
      await source.transport.read(file, spec.fileOffset, pool.u8.subarray(slab, slab + spec.byteLength));
      loaded.push({ spec: { ...spec, windowRows: plan.batchRows }, slab });
    }
    chunks.push(loaded);
  }
  const began = performance.now();
  await overRowGroups(client, async (group) => {
    await Promise.all(chunks[group]!.map(({ spec, slab }) => decodeChunk(engine, spec, slab)));
  });
  const wallMs = performance.now() - began;
  for (const { spec, slab } of chunks.flat()) pool.free(slab, spec.byteLength);
  return wallMs;
}

function decodeChunk({ pool, streams }: ScanEngine, spec: ChunkSpec, slab: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const flow: Flow = streams.open(spec, {
      segment: (segment) => pool.free(segment.slab, segment.slabBytes),
      idle: () => flow.run(),
      consumed: () => {},
      memoryShort: () => reject(new Error('no memory to decode')),
      ended: () => resolve(),
      failed: reject,
    })!;
    flow.add({ address: slab, start: 0, end: spec.byteLength });
    flow.arrived(spec.byteLength);
    flow.run();
  });
}
