/**
 * DuckDB over mounts of a server that is far away: a proxy of ours holds every byte back for half of the added latency
 * each way. The raw and the decoded view at several prefetch depths, and a mount that takes Parquet for any other file
 * (sequential read-ahead only): time, requests, bytes that came, those by the bytes of the query's column chunks, and
 * how busy who decodes was (DuckDB's thread, our decoder). A fresh mount for each run, and a new DuckDB.
 */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { lineChart } from './line-chart.ts';
import { lineitemFile } from './make-lineitem.ts';
import { benchFolder, runQuery, startCommand, startScript } from './mount-commands.ts';
import { alternate, type BenchOptions, type BenchResult, formatTable, median, RUNS } from './result.ts';
import { whyNoMount } from './why-no-mount.ts';

const ROWS = { small: 240_000, full: 2_000_000 } as const;
/** Milliseconds that are added to a round trip. */
const LATENCIES = { small: [5], full: [1, 10, 50] } as const;
const DEPTHS = { small: [1, 4], full: [1, 2, 4, 8] } as const;
const ENGINE_CORE = 0;
const OUR_CORE = 1;
const QUERY = 'q6';
const COLUMNS = ['l_extendedprice', 'l_discount', 'l_shipdate', 'l_quantity'];
const PINGS = 15;
const MIB = 1 << 20;

type View = 'raw' | 'decoded' | 'plain';
interface Config {
  readonly view: View;
  readonly depth: number;
}
const nameOf = ({ view, depth }: Config): string => (view === 'plain' ? 'plain' : `${view} ${depth}`);

/** One query through one mount. */
interface Sample {
  readonly wallMs: number;
  readonly requests: number;
  readonly bytes: number;
  /** Shares of the query's time. */
  readonly engineBusy: number;
  readonly decoderBusy: number | undefined;
}

interface Place {
  readonly addedMs: number;
  /** A round trip of a byte as it was measured. */
  readonly roundTripMs: number;
  readonly samples: Readonly<Record<string, readonly Sample[]>>;
}

export async function benchMountLatency(options: BenchOptions = {}): Promise<BenchResult> {
  const unfit = whyNoMount();
  if (unfit !== undefined) return { table: '', ratios: {}, skipped: unfit };
  const size = options.small ? 'small' : 'full';
  const runs = options.small ? 1 : RUNS.small;
  const file = await lineitemFile({ rows: options.rows ?? ROWS[size] });
  const needed = await neededBytes(file);
  const expected = (await runQuery(ENGINE_CORE, file, QUERY)).rows;
  const depths = DEPTHS[size];
  const configs: Config[] = [
    { view: 'plain', depth: 1 },
    ...depths.map((depth) => ({ view: 'raw', depth }) as const),
    ...depths.map((depth) => ({ view: 'decoded', depth }) as const),
  ];
  using folders = benchFolder();
  await using server = await startCommand(OUR_CORE, [
    ...['serve', dirname(file), '--listen', '127.0.0.1:0', '--http', 'none'],
  ]);
  const serverPort = String(server.ready.rdma).split(':').at(-1)!;
  const places: Place[] = [];
  for (const addedMs of LATENCIES[size]) {
    const roundTripMs = await measureRoundTrip(addedMs);
    await using proxy = await startScript(OUR_CORE, './delay-server.ts', [serverPort, String(addedMs / 2)]);
    const url = `rdma://127.0.0.1:${String(proxy.ready.port)}`;
    const samples = Object.fromEntries(configs.map((config) => [nameOf(config), [] as Sample[]]));
    const sides = configs.map((config) => [
      nameOf(config),
      async () => {
        const sample = await sampleOf(config, url, folders.folder('mounted'), basename(file), expected);
        samples[nameOf(config)]!.push(sample);
        return sample.wallMs;
      },
    ]);
    await alternate(runs, Object.fromEntries(sides) as Record<string, () => Promise<number>>);
    places.push({ addedMs, roundTripMs, samples });
  }
  if (options.svg !== undefined) writeFileSync(options.svg, picture(places, depths, needed));
  return report(places, configs, needed, runs);
}

async function sampleOf(
  { view, depth }: Config,
  url: string,
  folder: string,
  name: string,
  expected: string,
): Promise<Sample> {
  const args = ['mount', url, folder, '--view', view === 'decoded' ? 'decoded' : 'raw', '--json', '--stats'];
  const more = ['--prefetch-depth', String(depth), '--metrics', '127.0.0.1:0'];
  const variables: Record<string, string> = view === 'plain' ? { QANAT_INTERNAL_PLAIN_MOUNT: '1' } : {};
  const mounted = await startCommand(OUR_CORE, [...args, ...more], variables);
  let sample: Omit<Sample, 'requests' | 'bytes'>;
  try {
    const metrics = `http://${String(mounted.ready.metrics)}/metrics`;
    const busyBefore = await decoderBusyMs(metrics);
    const { wallMs, cpuMs, rows } = await runQuery(ENGINE_CORE, join(folder, name), QUERY);
    if (rows !== expected) throw new Error(`${view} ${depth}: other rows: ${rows.slice(0, 200)}`);
    const decoderMs = (await decoderBusyMs(metrics)) - busyBefore;
    const decoderBusy = view === 'decoded' ? decoderMs / wallMs : undefined;
    sample = { wallMs, engineBusy: cpuMs / wallMs, decoderBusy };
  } finally {
    await mounted[Symbol.asyncDispose]();
  }
  const report = JSON.parse(/^\{"view".*\}$/m.exec(mounted.errors())?.[0] ?? 'null') as {
    raw: { requests: number };
    footerRequests: number;
    bytes: { onWire: number };
  } | null;
  if (report === null) throw new Error(`the mount gave no report: ${mounted.errors()}`);
  return { ...sample, requests: report.raw.requests + report.footerRequests, bytes: report.bytes.onWire };
}

/** Milliseconds in which decoders had been busy. */
async function decoderBusyMs(url: string): Promise<number> {
  const text = await (await fetch(url)).text();
  let seconds = 0;
  for (const [, labels, value] of text.matchAll(/^qanat_decode_seconds_total\{([^}]*)\} (\S+)$/gm)) {
    if (labels!.includes('side="input"') && labels!.includes('state="busy"')) seconds += Number(value);
  }
  return seconds * 1000;
}

/** Compressed bytes of the column chunks that the query reads. */
async function neededBytes(file: string): Promise<number> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  const names = COLUMNS.map((name) => `'${name}'`).join(', ');
  const reader = await connection.runAndReadAll(
    `select sum(total_compressed_size)::bigint from parquet_metadata('${file}') where path_in_schema in (${names})`,
  );
  const bytes = Number(reader.getRows()[0]![0]);
  connection.closeSync();
  instance.closeSync();
  return bytes;
}

/** What a byte and its echo take through a proxy of its own. */
async function measureRoundTrip(addedMs: number): Promise<number> {
  const echo = createServer({ noDelay: true }, (socket) => socket.pipe(socket)).listen(0, '127.0.0.1');
  await once(echo, 'listening');
  const { port } = echo.address() as { port: number };
  await using proxy = await startScript(OUR_CORE, './delay-server.ts', [String(port), String(addedMs / 2)]);
  const socket = connect({ host: '127.0.0.1', port: Number(proxy.ready.port), noDelay: true });
  await once(socket, 'connect');
  const times: number[] = [];
  for (let ping = 0; ping < PINGS; ping++) {
    const began = performance.now();
    socket.write('.');
    await once(socket, 'data');
    times.push(performance.now() - began);
  }
  socket.destroy();
  echo.close();
  return median(times);
}

const mediansOf = (samples: readonly Sample[], needed: number) => ({
  wallMs: median(samples.map(({ wallMs }) => wallMs)),
  requests: median(samples.map(({ requests }) => requests)),
  bytes: median(samples.map(({ bytes }) => bytes)),
  amplification: median(samples.map(({ bytes }) => bytes / needed)),
  engineBusy: median(samples.map(({ engineBusy }) => engineBusy)),
  decoderBusy:
    samples[0]!.decoderBusy === undefined ? undefined : median(samples.map(({ decoderBusy }) => decoderBusy!)),
});

function report(places: readonly Place[], configs: readonly Config[], needed: number, runs: number): BenchResult {
  const rows = places.flatMap(({ addedMs, samples }) =>
    configs.map((config) => {
      const of = mediansOf(samples[nameOf(config)]!, needed);
      return [
        `${addedMs} ms, ${nameOf(config)}`,
        of.wallMs.toFixed(0),
        String(of.requests),
        (of.bytes / MIB).toFixed(1),
        of.amplification.toFixed(2),
        percent(of.engineBusy),
        of.decoderBusy === undefined ? '' : percent(of.decoderBusy),
      ];
    }),
  );
  const best = ({ samples }: Place, view: View): number =>
    Math.min(
      ...configs
        .filter((config) => config.view === view)
        .map((config) => mediansOf(samples[nameOf(config)]!, needed).wallMs),
    );
  const trips = places.map(({ addedMs, roundTripMs }) => `${roundTripMs.toFixed(1)} at ${addedMs}`).join(', ');
  return {
    table: [
      `DuckDB's ${QUERY}, one thread, ${runs} runs; its column chunks have ${(needed / MIB).toFixed(1)} MiB; a round trip of a byte in ms: ${trips}`,
      formatTable([
        ['added, view, depth', 'ms', 'requests', 'MiB', 'amplification', 'DuckDB busy', 'decoder busy'],
        ...rows,
      ]),
    ].join('\n'),
    ratios: Object.fromEntries(
      places.map((place) => [`latency.${place.addedMs}ms.plain.overRaw`, best(place, 'plain') / best(place, 'raw')]),
    ),
    details: { runs, neededBytes: needed, places },
  };
}

const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;

const COLOURS: Readonly<Record<View, string>> = { raw: '#1f6fb4', decoded: '#d1601f', plain: '#777777' };
const NAMES: Readonly<Record<View, string>> = { raw: 'raw', decoded: 'decoded', plain: 'without Parquet knowledge' };

/** A column of panels for each latency: time, bytes, and how busy decoders were, over the prefetch depth. */
function picture(places: readonly Place[], depths: readonly number[], needed: number): string {
  type Figures = ReturnType<typeof mediansOf>;
  const line = (place: Place, view: View, figure: (of: Figures) => number | undefined) => ({
    name: NAMES[view],
    colour: COLOURS[view],
    dashed: view === 'plain',
    values: depths.map((depth) => figure(mediansOf(place.samples[nameOf({ view, depth })]!, needed))),
  });
  const row = (unit: string, views: readonly View[], figure: (of: Figures) => number | undefined, top?: number) =>
    places.map((place) => ({
      title: `${place.addedMs} ms added`,
      unit,
      lines: views.map((view) => line(place, view, figure)),
      ...(top === undefined ? {} : { top }),
    }));
  return lineChart({
    title: `DuckDB, TPC-H Q6 over a mount: a network of ${places.map(({ addedMs }) => addedMs).join(', ')} ms`,
    axis: 'prefetch depth (row groups in flight)',
    places: depths.map(String),
    panels: [
      row('milliseconds', ['plain', 'raw', 'decoded'], ({ wallMs }) => wallMs),
      row('bytes fetched by bytes needed', ['plain', 'raw', 'decoded'], ({ amplification }) => amplification, 1),
      row('decoder busy, percent', ['decoded'], ({ decoderBusy }) => (decoderBusy ?? 0) * 100, 100),
    ],
  });
}
