/**
 * Range reads from the storage server, reading from storage and with files pinned, and from nginx with sendfile: same
 * file, same ranges, same number of connections and outstanding requests, equally cheap clients. Runs alternate; the
 * ratio is that of the medians. All serve from memory of this machine (page cache or pinned), in processes of their own.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomFillSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseDirectory, parseDirectorySize } from '../storage-server/protocol/index.ts';
import {
  type ConnectRangeClient,
  connectHttpClient,
  connectQueuePairClient,
  fetchOnce,
  type RangeClient,
  type RangeTarget,
} from './range-clients.ts';
import { alternate, formatTable, geometricMean, median } from './result.ts';

export interface ServeBench {
  readonly table: string;
  readonly ratios: Record<string, number>;
  /** Why there is nothing to compare with. */
  readonly skipped?: string;
}

const CONNECTIONS = 4;
const OUTSTANDING = 4;
const SIDES = ['qanat', 'pinned', 'nginx'] as const;
type SideName = (typeof SIDES)[number];
const SIZES = [64 * 1024, 1024 * 1024, 8 * 1024 * 1024] as const;

/** Throughput of range reads against nginx; `small` takes seconds instead of half a minute. */
export async function benchServe(options: { small?: boolean } = {}): Promise<ServeBench> {
  const nginx = spawnSync('nginx', ['-v']);
  if (nginx.error !== undefined) return { table: '', ratios: {}, skipped: 'nginx is not installed' };
  const folder = mkdtempSync(join(tmpdir(), 'qanat-bench-serve-'));
  const stops: (() => void)[] = [() => rmSync(folder, { recursive: true, force: true })];
  try {
    const data = randomFillSync(Buffer.allocUnsafe((options.small ? 64 : 256) * 1024 * 1024));
    writeFileSync(join(folder, 'data.bin'), data);
    const sides = {
      qanat: await startOurs([join(folder, 'data.bin')], stops),
      pinned: await startOurs(['--pin', join(folder, 'data.bin')], stops),
      nginx: await startNginx(folder, stops),
    };
    return await compare(data, sides, options.small ? { runs: 3, seconds: 0.3 } : { runs: 7, seconds: 1 });
  } finally {
    for (const stop of stops.reverse()) stop();
  }
}

interface Side {
  readonly connect: ConnectRangeClient;
  readonly target: RangeTarget;
}

async function compare(
  data: Buffer,
  sides: Readonly<Record<SideName, Side>>,
  plan: { runs: number; seconds: number },
): Promise<ServeBench> {
  const rows = [['request', ...SIDES.map((name) => `${name} GB/s`), 'ratio', 'pinned ratio']];
  const ratios: Record<'qanat' | 'pinned', number[]> = { qanat: [], pinned: [] };
  for (const size of SIZES) {
    for (const side of Object.values(sides)) await checkContent(data, side, size);
    const run = (name: SideName) => () => throughput(sides[name], data.byteLength, size, plan.seconds);
    const samples = await alternate(plan.runs, { qanat: run('qanat'), pinned: run('pinned'), nginx: run('nginx') });
    const rates = { qanat: median(samples.qanat), pinned: median(samples.pinned), nginx: median(samples.nginx) };
    ratios.qanat.push(rates.qanat / rates.nginx);
    ratios.pinned.push(rates.pinned / rates.nginx);
    const cells = [...SIDES.map((name) => rates[name]), ratios.qanat.at(-1)!, ratios.pinned.at(-1)!];
    rows.push([size < 2 ** 20 ? `${size / 2 ** 10} KiB` : `${size / 2 ** 20} MiB`, ...cells.map((x) => x.toFixed(2))]);
  }
  return {
    table: formatTable(rows),
    ratios: {
      'nginx.throughput.small': ratios.qanat[0]!,
      'nginx.throughput.large': geometricMean(ratios.qanat.slice(1)),
      'nginx.throughput.pinned.small': ratios.pinned[0]!,
      'nginx.throughput.pinned.large': geometricMean(ratios.pinned.slice(1)),
    },
  };
}

async function checkContent(data: Buffer, { connect, target }: Side, size: number): Promise<void> {
  const start = 4096 + 7;
  const got = await fetchOnce(connect, target, start, size);
  if (!got.equals(data.subarray(start, start + size))) throw new Error(`wrong bytes for a range of ${size}`);
}

/** GB/s of random ranges of one size. */
async function throughput(side: Side, fileBytes: number, size: number, seconds: number): Promise<number> {
  let random = 12345;
  const nextStart = (): number => {
    random = (Math.imul(random, 1103515245) + 12345) >>> 0;
    return Math.floor((random / 2 ** 32) * ((fileBytes - size) / 64)) * 64;
  };
  let done = 0;
  let failed: Error | undefined;
  const begun = performance.now();
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      await new Promise<void>((resolve, reject) => {
        let out = 0;
        const onDone = (): void => {
          done++;
          if (performance.now() - begun < seconds * 1000) client?.request(nextStart(), size);
          else if (--out === 0) {
            client?.close();
            resolve();
          }
        };
        let client: RangeClient | undefined;
        const onError = (error: Error): void => {
          failed = error;
          reject(error);
        };
        side.connect(side.target, { onDone, onError }).then((open) => {
          client = open;
          for (; out < OUTSTANDING; out++) open.request(nextStart(), size);
        }, reject);
      });
    }),
  );
  if (failed !== undefined) throw failed;
  return (done * size) / 1e6 / (performance.now() - begun);
}

async function startOurs(args: readonly string[], stops: (() => void)[]): Promise<Side> {
  const script = fileURLToPath(new URL('../storage-server/bench/serve-process.ts', import.meta.url));
  const child = spawn(process.execPath, [script, '0', ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  stops.push(() => child.kill());
  const { port } = JSON.parse(await firstLine(child)) as { port: number };
  const region = { port, base: 0 };
  const size = await fetchOnce(connectQueuePairClient, region, 0, 8);
  const directoryBytes = parseDirectorySize(size, Number.MAX_SAFE_INTEGER);
  const bytes = await fetchOnce(connectQueuePairClient, region, 8, directoryBytes);
  const directory = parseDirectory(bytes, Number.MAX_SAFE_INTEGER);
  const base = directory.dataStart + directory.entries[0]!.offset;
  return { connect: connectQueuePairClient, target: { port, base } };
}

async function firstLine(child: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: child.stdout! })) return line;
  throw new Error('the server ended before it was ready');
}

async function startNginx(folder: string, stops: (() => void)[]): Promise<Side> {
  const port = await freePort();
  const config = join(folder, 'nginx.conf');
  writeFileSync(
    config,
    `daemon off; worker_processes auto; pid ${folder}/nginx.pid; error_log ${folder}/error.log;
${process.getuid?.() === 0 ? 'user root;' : ''}
events { worker_connections 64; }
http {
  access_log off; sendfile on; tcp_nodelay on; keepalive_requests 100000000;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
  server { listen 127.0.0.1:${port}; root ${folder}; }
}
`,
  );
  const child = spawn('nginx', ['-c', config, '-p', folder], { stdio: 'ignore' });
  stops.push(() => child.kill());
  const side = { connect: connectHttpClient, target: { port, base: 0 } };
  for (let attempt = 0; ; attempt++) {
    try {
      await fetchOnce(side.connect, side.target, 0, 1);
      return side;
    } catch (error) {
      if (attempt === 50 || child.exitCode !== null) throw error;
      await sleep(100);
    }
  }
}

/** A port that was free a moment ago: nginx can't be asked which one it took. */
async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
