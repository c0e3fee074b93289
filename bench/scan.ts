/**
 * A remote scan over loopback, server and client in processes of their own, against what it can't beat: fetching the
 * same ranges without decoding, decoding the same chunks from memory on the same decoder streams, and the processor
 * time of both processes spread over all cores. `wall.overBound` is the scan's wall time over the largest of these.
 * Batches are released as they come; `arrow` also copies each into Arrow memory of its own. `profiler.cost` is the same
 * scan, and the same decoding, by an engine without profilers: the median of each round's time with by that without;
 * `cpu` is processor time of the client during the scan, which other processes disturb less.
 */
import { availableParallelism } from 'node:os';
import { digestOurs } from './decode-check.ts';
import { decodeEnvironment, leafNamed, loadFile } from './decode-ours.ts';
import { lineitemFile } from './make-lineitem.ts';
import { type PeerProcess, startPeer } from './peer-process.ts';
import { alternate, type BenchOptions, type BenchResult, formatTable, median, RUNS } from './result.ts';
import type { ClientQuestion, Opened, ScanFigures } from './scan-client.ts';
import type { ServerQuestion } from './scan-server.ts';

const ROWS = { small: 240_000, full: 2_000_000 } as const;
/** Bytes. */
const MEMORY_BYTES = 512 << 20;

export async function benchScan(options: BenchOptions = {}): Promise<BenchResult> {
  const file = await lineitemFile({ rows: options.rows ?? (options.small ? ROWS.small : ROWS.full) });
  const runs = options.small ? RUNS.small : RUNS.full;
  await using server = startPeer('./scan-server.ts');
  await using client = startPeer('./scan-client.ts');
  await using bare = startPeer('./scan-client.ts');
  const ask = <Answer>(question: ClientQuestion): Promise<Answer> => client.ask<Answer>(question);
  const port = await server.ask<number>({ kind: 'serve', file } satisfies ServerQuestion);
  const open = { kind: 'open', url: `rdma://127.0.0.1:${port}/`, memoryBytes: MEMORY_BYTES } as const;
  const opened = await ask<Opened>({ ...open, profiler: true });
  await bare.ask<Opened>({ ...open, profiler: false } satisfies ClientQuestion);
  await checkValues(file, await ask({ kind: 'digest' }));

  const scans: Record<'plain' | 'arrow' | 'bare', MeasuredScan[]> = { plain: [], arrow: [], bare: [] };
  const sides = {
    plain: async () => await measureScan(server, client, false, scans.plain),
    fetch: () => ask<number>({ kind: 'fetch' }),
    decode: () => ask<number>({ kind: 'decode' }),
    arrow: async () => await measureScan(server, client, true, scans.arrow),
    bareScan: async () => await measureScan(server, bare, false, scans.bare),
    bareDecode: () => bare.ask<number>({ kind: 'decode' } satisfies ClientQuestion),
  };
  // the first round compiles what the others measure
  await alternate(1, sides);
  for (const measured of Object.values(scans)) measured.length = 0;
  const samples = await alternate(runs, sides);

  const cost = (ours: readonly number[], without: readonly number[]): number =>
    median(ours.map((ms, round) => ms / without[round]!));
  const profiler = {
    scan: cost(samples.plain, samples.bareScan),
    decode: cost(samples.decode, samples.bareDecode),
    cpu: cost(
      scans.plain.map(({ cpuMs }) => cpuMs),
      scans.bare.map(({ cpuMs }) => cpuMs),
    ),
  };
  const cores = availableParallelism();
  const fetchMs = median(samples.fetch);
  const decodeMs = median(samples.decode);
  const figures = (name: 'plain' | 'arrow') => {
    const of = (key: keyof MeasuredScan): number => median(scans[name].map((one) => one[key]));
    const cpuShareMs = (of('cpuMs') + of('serverCpuMs')) / cores;
    const boundMs = Math.max(fetchMs, decodeMs, cpuShareMs);
    const wallMs = of('wallMs');
    const detail = { clientCpuMs: of('cpuMs'), serverCpuMs: of('serverCpuMs'), decodeBusyMs: of('decodeMs') };
    return { wallMs, boundMs, cpuShareMs, overBound: wallMs / boundMs, waitedMs: of('waitedMs'), ...detail };
  };
  const plain = figures('plain');
  const arrow = figures('arrow');
  const rows = scans.plain[0]!.rows;
  return {
    table: [
      `${rows} rows, ${runs} runs, ${cores} cores, ${opened.decoders} decoder streams, ${opened.requests} requests; ms`,
      formatTable([
        ['', 'wall', 'fetch alone', 'decode alone', 'CPU / cores', 'bound', 'over bound'],
        ...Object.entries({ scan: plain, 'scan to Arrow': arrow }).map(([name, one]) => [
          name,
          ...[one.wallMs, fetchMs, decodeMs, one.cpuShareMs, one.boundMs].map((value) => value.toFixed(1)),
          one.overBound.toFixed(2),
        ]),
      ]),
    ].join('\n'),
    ratios: {
      'wall.overBound': plain.overBound,
      'wall.arrow.overBound': arrow.overBound,
      'profiler.cost.scan': profiler.scan,
      'profiler.cost.decode': profiler.decode,
      'profiler.cost.cpu': profiler.cpu,
    },
    details: { rows, runs, cores, ...opened, fetchMs, decodeMs, plain, arrow, profiler, samples },
  };
}

interface MeasuredScan extends ScanFigures {
  readonly serverCpuMs: number;
}

async function measureScan(
  server: PeerProcess,
  client: PeerProcess,
  arrow: boolean,
  into: MeasuredScan[],
): Promise<number> {
  const before = await server.ask<number>({ kind: 'cpu' } satisfies ServerQuestion);
  const scan = await client.ask<ScanFigures>({ kind: 'scan', arrow } satisfies ClientQuestion);
  const after = await server.ask<number>({ kind: 'cpu' } satisfies ServerQuestion);
  into.push({ ...scan, serverCpuMs: after - before });
  return scan.wallMs;
}

/** The scan has the values that decoding the local file gives. */
async function checkValues(path: string, digests: Readonly<Record<string, string>>): Promise<void> {
  const file = loadFile(path);
  const environment = decodeEnvironment(128 << 20);
  for (const { name } of file.metadata.leaves) {
    const { text } = digestOurs(environment, file, leafNamed(file, name));
    if (digests[name] !== text) throw new Error(`${name}: the remote scan has other values than the local file`);
  }
}
