/**
 * `npm run soak -- [--minutes 10] [--json]`: a server that watches its folder, three clients that scan in loops (a daemon
 * with two readers, a daemon with a slow one, a program that uses the library and is killed or frozen now and then), files
 * rewritten every few seconds, Prometheus scraping all. Every row is checked: what it says of its file's version has to be
 * of one generation that was served then; STALE is expected, anything else is a failure. Each minute or so the load stops:
 * then nothing may be left of it, and what either end counts has to be the same. Exits with 1 when something was wrong.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { randomFrom } from '../decode/tests/random.ts';
import { formatTable } from './result.ts';
import { type Holdings, type Traffic, unequal } from './soak-figures.ts';
import { SoakLake } from './soak-lake.ts';
import { SoakLoad, type Tally } from './soak-load.ts';
import { type SoakDaemon, startDaemon, startPrometheus, startServer } from './soak-processes.ts';
import { judgePrometheus, type PrometheusVerdict } from './soak-prometheus.ts';
import { type Rest, SoakWatch, Watched } from './soak-watch.ts';

/** Milliseconds of load between two rests: ten of them in ten minutes, some in ten seconds. */
const ROUND_MS = { long: 55_000, short: 2_000 } as const;
/** One to warm up, one with a kill, one without. */
const ROUNDS_LEAST = 3;
/** From so many minutes on a run is a long one. */
const LONG_MINUTES = 5;
const REWRITE_MS = { long: 3_000, short: 400 } as const;
const SLOW_MS = { long: 150, short: 40 } as const;
const DAEMON_MEMORY = '32MiB';
const PROGRAM_MEMORY_BYTES = 32 << 20;
/** Rests of a warm-up, after which what is left by collections of garbage may not grow. */
const WARM_ROUNDS = { long: 2, short: 1 } as const;
/** Bytes, of JavaScript's heap and of buffers beside it, after collections: where a batch of rows is half a megabyte. */
const HEAP_GROWTH_BYTES_MAX = 12 << 20;
const EXTERNAL_GROWTH_BYTES_MAX = 12 << 20;
/**
 * Bytes that may be resident at the end beyond the most of the run's first half. V8 lets some 64 MB of buffers gather before
 * it frees them and the allocator keeps the pages, so that it takes some hundred scans until nothing is used for the first
 * time; from then on a leak would show here too.
 */
const RSS_GROWTH_BYTES_MAX = { long: 64 << 20, short: 128 << 20 } as const;

interface Report {
  readonly seconds: number;
  readonly seed: number;
  readonly processes: Readonly<Record<string, ProcessReport>>;
  readonly scans: Readonly<Record<string, Tally>>;
  readonly generations: number;
  readonly kills: number;
  /** Sent to programs that were killed, and in no scrape of theirs. */
  readonly lost: Traffic;
  readonly sent: Traffic;
  readonly metricsMs: { readonly median: number; readonly p99: number };
  readonly prometheus: PrometheusVerdict | 'not installed';
  readonly complaints: readonly string[];
}

interface ProcessReport {
  readonly first: Holdings;
  readonly warm: Rest;
  readonly end: Rest;
  readonly rests: readonly Rest[];
  readonly rssMax: number;
}

function readArguments(): { minutes: number; json: boolean } {
  const { values } = parseArgs({ options: { minutes: { type: 'string' }, json: { type: 'boolean' } } });
  const minutes = Number(values.minutes ?? 10);
  if (!(minutes > 0 && minutes <= 24 * 60)) throw new Error(`--minutes ${values.minutes}: expected 0.1 to 1440`);
  return { minutes, json: values.json ?? false };
}

async function soak(minutes: number, progress: (text: string) => void): Promise<Report> {
  const size = minutes >= LONG_MINUTES ? 'long' : 'short';
  const seed = Number(process.env.QANAT_SEED ?? Date.now() % 2 ** 31);
  const random = randomFrom(seed);
  await using lake = await SoakLake.create();
  const troubles: string[] = [];
  const server = await startServer(
    lake.folder,
    (at) => lake.published(at),
    (line) => troubles.push(line),
  );
  const watch = new SoakWatch(new Watched('serve', 'server', server.process, server.metrics), progress);
  const quick = await startDaemon('quick', server.rdma, DAEMON_MEMORY);
  const slow = await startDaemon('slow', server.rdma, DAEMON_MEMORY);
  const load = await SoakLoad.create(lake, watch, server, {
    rdma: server.rdma,
    rewriteMs: REWRITE_MS[size],
    // a look that was asked for twice may be under way when files are rewritten soon after
    hangsUp: size === 'long',
    slowMs: SLOW_MS[size],
    memoryBytes: PROGRAM_MEMORY_BYTES,
    random: random.below,
  });
  await watch.addClient(new Watched('quick', 'client', quick.process, quick.metrics));
  await watch.addClient(new Watched('slow', 'client', slow.process, slow.metrics));
  const targets = { serve: server.metrics, quick: quick.metrics, slow: slow.metrics, program: load.programMetrics };
  const prometheus = await startPrometheus((name) => lake.path(name), targets);
  watch.begin();
  const began = performance.now();
  const seconds = (): number => (performance.now() - began) / 1000;

  for (let round = 0; round < ROUNDS_LEAST || seconds() < minutes * 60; round++) {
    load.begin(quick, slow);
    const roundMs = round === 0 ? ROUND_MS[size] / 2 : ROUND_MS[size];
    await sleep(roundMs / 2);
    // the first is the warm-up; in those with a kill both ends can't be compared exactly
    if (round % 2 === 1) await load.killProgram();
    else if (round > 0) await load.freezeProgram();
    await sleep(roundMs / 2);
    await load.pause();
    await watch.rest();
    progress(`${seconds().toFixed(0)} s: round ${round}, ${watch.complaints.length} complaints`);
  }

  const verdict = prometheus === undefined ? 'not installed' : await judgePrometheus(prometheus.url, watch, seconds());
  if (verdict !== 'not installed') for (const complaint of verdict.complaints) watch.complain(complaint);
  await watch.end();
  for (const line of troubles) watch.complain(`serve: ${line}`);
  const report = reportOf(watch, lake, load.tallies, WARM_ROUNDS[size], {
    seconds: seconds(),
    seed,
    prometheus: verdict,
  });
  checkEnd(watch, lake, report, size);
  for (const { process } of [quick, slow, server]) await process.stop().catch((error) => watch.complain(error.message));
  checkLogs({ quick, slow }, load.tallies, watch);
  await load.stopProgram();
  prometheus?.process.kill();
  await prometheus?.process.died();
  return { ...report, complaints: [...watch.complaints] };
}

/** What must hold of the run as a whole. Pool and descriptors are back at each rest. */
function checkEnd(watch: SoakWatch, lake: SoakLake, report: Report, size: 'long' | 'short'): void {
  for (const { name, side } of watch.all) {
    const { warm, end, rests } = report.processes[name]!;
    const most = Math.max(...rests.slice(0, Math.ceil(rests.length / 2)).map(({ rssBytes }) => rssBytes));
    const wrong = [
      // a source that is open keeps one, or none when its last read ended with an error
      ...unequal('queue pairs', end.queuePairs, side === 'server' ? watch.clients.length : 1, 'at most'),
      ...unequal('resident bytes', end.rssBytes, most + RSS_GROWTH_BYTES_MAX[size], 'at most'),
      // in rounds that are long enough for collections
      ...(size === 'long' ? floorGrowth(warm, end) : []),
    ];
    for (const one of wrong) watch.complain(`${name} at the end: ${one}`);
  }
  const { last } = watch.server;
  for (const one of unequal('generations', last!.generations, lake.publications)) watch.complain(`serve: ${one}`);
  for (const [client, { complete, stale, rows }] of Object.entries(report.scans)) {
    if (rows === 0) watch.complain(`${client}: no rows`);
    if (size === 'short') continue;
    if (complete === 0) watch.complain(`${client}: no scan came to its end`);
    if (stale === 0) watch.complain(`${client}: no scan met a new generation`);
  }
}

function floorGrowth(warm: Rest, end: Rest): string[] {
  return [
    ...unequal('heap after collections', end.heapFloor, warm.heapFloor + HEAP_GROWTH_BYTES_MAX, 'at most'),
    ...unequal('bytes beside the heap', end.externalFloor, warm.externalFloor + EXTERNAL_GROWTH_BYTES_MAX, 'at most'),
  ];
}

/** What readers took for STALE the daemon has to call so, and nothing else may have failed there. */
function checkLogs(
  daemons: Readonly<Record<string, SoakDaemon>>,
  tallies: ReadonlyMap<string, Tally>,
  watch: SoakWatch,
): void {
  for (const [name, { logged }] of Object.entries(daemons)) {
    const { complete, stale, 'given up': givenUp } = tallies.get(name)!;
    const count = (text: string): number => logged.get(text) ?? 0;
    const told = count('scan: failed STALE') + count('refused STALE');
    const all = [...logged.values()].reduce((sum, scans) => sum + scans, 0);
    const wrong = [
      ...unequal('scans in the log that are STALE', told, stale, 'at least'),
      ...unequal('complete scans in the log', count('scan: complete'), complete, 'at least'),
      ...unequal('scans in the log', all, complete + stale + givenUp),
      // whoever gives up may be told of the end of the scan before it has gone
      ...unequal('scans in the log of other kinds', all - told - count('scan: complete'), count('scan: client gone')),
    ];
    for (const one of wrong) watch.complain(`${name}: ${one}: ${JSON.stringify([...logged])}`);
  }
}

function reportOf(
  watch: SoakWatch,
  lake: SoakLake,
  tallies: ReadonlyMap<string, Tally>,
  warmRounds: number,
  run: Pick<Report, 'seconds' | 'seed' | 'prometheus'>,
): Report {
  const answers = [...watch.answerMs].sort((a, b) => a - b);
  const quantile = (share: number): number =>
    answers[Math.min(answers.length - 1, Math.floor(answers.length * share))]!;
  return {
    ...run,
    processes: Object.fromEntries(
      watch.all.map(({ name, first, rssMax }) => {
        const rests = watch.rests.get(name)!;
        const [warm, end] = [rests[warmRounds - 1]!, rests.at(-1)!];
        return [name, { first: first!.holdings, warm, end, rests, rssMax }];
      }),
    ),
    scans: Object.fromEntries(tallies),
    generations: lake.publications,
    kills: watch.kills,
    lost: watch.lost,
    sent: watch.server.last!.traffic,
    metricsMs: { median: quantile(0.5), p99: quantile(0.99) },
    complaints: [],
  };
}

const mebibytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(1);

function textOf(report: Report): string {
  const { processes, scans, lost, sent, prometheus, metricsMs, complaints } = report;
  const holdings = Object.entries(processes).map(([name, { first, warm, end, rssMax }]) => {
    const at = (of: (one: Holdings) => string | number): string => [first, warm, end].map(of).join(' / ');
    return [
      name,
      at(({ rssBytes }) => mebibytes(rssBytes)),
      mebibytes(rssMax),
      [warm, end].map(({ heapFloor }) => mebibytes(heapFloor)).join(' / '),
      [warm, end].map(({ externalFloor }) => mebibytes(externalFloor)).join(' / '),
      at(({ descriptors }) => descriptors),
      at(({ queuePairs }) => queuePairs),
      at(({ openFiles }) => openFiles),
      at(({ poolBytes }) => poolBytes),
    ];
  });
  const memory = ['RSS MiB', 'most', 'least heap MiB', 'least beside it'];
  const head = ['start / warm / end', ...memory, 'descriptors', 'pairs', 'files', 'pool bytes'];
  const outcomes = ['complete', 'stale', 'given up', 'killed', 'FAILED', 'rows'] as const;
  const rows = Object.entries(scans).map(([client, tally]) => [client, ...outcomes.map((one) => String(tally[one]))]);
  const asked =
    prometheus === 'not installed'
      ? ['Prometheus is not installed']
      : [
          `Prometheus has ${prometheus.compared} series as the processes have them, and says`,
          ...prometheus.queries.map(({ query, found, expected }) => `  ${found}, expected ${expected}: ${query}`),
        ];
  const reads = Object.entries(sent.reads).filter(([, count]) => count > 0);
  return [
    formatTable([head, ...holdings]),
    formatTable(
      Object.entries(processes).map(([name, { rests }]) => [
        `${name}, resident MiB at each rest`,
        ...rests.map(({ rssBytes }) => mebibytes(rssBytes)),
      ]),
    ),
    formatTable([['scans', ...outcomes], ...rows]),
    asked.join('\n'),
    `${report.seconds.toFixed(0)} s, seed ${report.seed}; ${report.generations} generations, ${report.kills} kills; ` +
      `sent ${mebibytes(sent.bytes)} MiB, of which ${mebibytes(lost.bytes)} MiB to programs that were killed before they ` +
      `could tell; READs ${reads.map(([status, count]) => `${status} ${count}`).join(', ')}; /metrics answers in ` +
      `${metricsMs.median.toFixed(1)} ms (median), ${metricsMs.p99.toFixed(0)} ms (99th percentile)`,
    complaints.length === 0 ? 'nothing was wrong' : `WRONG:\n${complaints.join('\n')}`,
  ].join('\n\n');
}

const { minutes, json } = readArguments();
const report = await soak(minutes, (text) => console.error(text));
console.log(json ? JSON.stringify(report) : textOf(report));
if (report.complaints.length > 0) process.exitCode = 1;
