/**
 * Every option of every command, once: how it is written, its variable in the environment, what it means and what
 * holds without it. The command line and the README's table are made from this.
 */
import { MEMORY_BYTES_MAX, MEMORY_BYTES_MIN } from '../decode/index.ts';
import {
  CACHE_BYTES_DEFAULT,
  CACHE_BYTES_MIN,
  PREFETCH_DEPTH_DEFAULT,
  PREFETCH_DEPTH_MAX,
  REQUEST_BYTES_MAX,
} from '../fetcher/index.ts';
import { DEFAULT_LIMITS } from '../storage-server/index.ts';
import { ACCESS_OPTIONS, GUARD_OPTIONS } from './access-options.ts';
import {
  bytesFrom,
  formatBytes,
  type NamedLocation,
  orAuto,
  orNone,
  parseBucketName,
  parseDomain,
  parseDuration,
  parseHostPort,
  parseNamedLocations,
  parseNames,
  wholeFrom,
} from './argument.ts';
import { CLIENT_MS_DEFAULT, SCANS_DEFAULT, SCANS_MAX } from './http/limits.ts';
import { LOG_FORMATS, LOG_LEVELS } from './log-names.ts';
import { VIEWS } from './mount/view.ts';
import { bytes, choice, file, type OptionSpec, toggle, whole } from './option-spec.ts';
import { RDMA_OPTIONS } from './rdma-options.ts';
import { MEMORY_BYTES_DEFAULT } from './scan/engine.ts';

export const SCAN_FORMATS = ['arrow', 'csv', 'ndjson', 'table', 'count', 'checksum'] as const;
export type ScanFormat = (typeof SCAN_FORMATS)[number];

const seconds = (ms: number): string => `${ms / 1000}s`;

export const OPTIONS = {
  listen: {
    argument: 'host:port',
    parse: parseHostPort,
    without: '127.0.0.1:7400; daemon 127.0.0.1:7491',
    meaning: 'Address for queue pairs, of the daemon for HTTP; port 0 takes a free one',
  },
  http: {
    argument: 'host:port|none',
    parse: orNone(parseHostPort),
    without: '127.0.0.1:7480',
    meaning:
      'Address for HTTP: files (`/files/<path>`, `/region`), `/metrics`, `/healthz`, `/readyz`; port 0 takes a free one, ' +
      '`none` does without',
  },
  s3: {
    argument: 'host:port',
    parse: parseHostPort,
    without: 'none',
    meaning: 'Serve the files as objects too, over a read-only S3 API at this address: each root is a bucket',
  },
  s3Keys: {
    ...file,
    without: 'none: everybody is let in',
    meaning:
      'File of the keys that requests to the S3 API have to be signed with, `id secret` a line; read again at SIGHUP',
  },
  s3Bucket: {
    argument: 'name',
    parse: parseBucketName,
    without: "the root's name, in small letters",
    meaning: 'Name of the bucket, when one root is served',
  },
  s3Domain: {
    argument: 'domain',
    parse: parseDomain,
    without: 'localhost',
    meaning: 'Requests to hosts `<bucket>.<domain>` mean that bucket (virtual-host style)',
  },
  metrics: {
    argument: 'host:port|none',
    parse: orNone(parseHostPort),
    without: 'none; daemon 127.0.0.1:7490',
    meaning: 'Address for HTTP while it runs: `/metrics`, `/healthz`, `/readyz`; port 0 takes a free one',
  },
  all: toggle(
    'Serve or pack every file, not only `*.parquet`, `*.parq` and `*.pq` (in any letter case, hidden ones not)',
  ),
  pin: {
    argument: 'bytes',
    preset: 'auto',
    parse: orAuto(bytesFrom(1, Number.MAX_SAFE_INTEGER)),
    without: 'off; alone, three quarters of the free memory',
    meaning:
      'Keep all files in memory, in at most so much of it, and do not start when they do not fit. They are then served ' +
      'as they were when they were read, whatever happens to them on disk',
  },
  align: {
    ...bytes(64, 2 ** 21),
    without: '64 B',
    meaning: 'Alignment of files in the region, or the packed file, a power of two',
  },
  watch: toggle(
    'Publish by itself what changes in the folders, after 200 ms of quiet, or 5 s if there is none. Where the system ' +
      'does not tell of changes it looks every 2 s; for what systems never tell, every minute in any case',
  ),
  watchInterval: {
    argument: 'time',
    parse: parseDuration,
    without: '1m, or 2s where the system does not tell of changes; mount 5s, of local files 2s, of buckets 1m',
    meaning: '`--watch`, and look at the folders so often in any case; of a mount, look at its source so often',
  },
  ...GUARD_OPTIONS,
  maxConnections: {
    ...whole('n', 1, 65535),
    without: String(DEFAULT_LIMITS.connectionsMax),
    meaning: 'Connections at a time; more are refused',
  },
  maxOutstanding: {
    ...whole('n', 1, 65535),
    without: String(DEFAULT_LIMITS.outstandingMax),
    meaning: 'Reads that a peer may have outstanding',
  },
  maxRead: {
    ...bytes(2 ** 12, 2 ** 30),
    without: formatBytes(DEFAULT_LIMITS.readBytesMax),
    meaning: 'Largest single read of a peer',
  },
  maxBuffered: {
    ...bytes(2 ** 20, 2 ** 30),
    without: formatBytes(DEFAULT_LIMITS.burstsMax * 2 ** 20),
    meaning: 'Bytes in memory for one peer, in whole MiB',
  },
  sendMemory: {
    ...bytes(2 ** 20, 2 ** 36),
    without: formatBytes(DEFAULT_LIMITS.slabsMax * 2 ** 20),
    meaning: 'Bytes in memory for all peers, in whole MiB',
  },
  drainTimeout: {
    argument: 'time',
    parse: parseDuration,
    without: seconds(DEFAULT_LIMITS.drainMs),
    meaning:
      'How long a server that is stopped goes on sending what was asked for, and how long a mount that is stopped waits ' +
      'for open files before it is taken away',
  },
  stallTimeout: {
    argument: 'time',
    parse: parseDuration,
    without: `10s; serve ${seconds(DEFAULT_LIMITS.stallMs)}`,
    meaning: 'Time without progress, or without a connection, after which the other side counts as lost',
  },
  connections: { ...whole('n', 1, 64), without: '1', meaning: 'Queue pairs to a server' },
  ...RDMA_OPTIONS,
  wireChecksum: toggle(
    'Check a CRC-32 of all bytes that come from a server and fetch again what was damaged on the way. Costs 0.14 ns a ' +
      'byte at either end, about a tenth of the time of a scan over loopback',
  ),
  hedge: toggle('Ask a second time for late reads and take what comes first: a twentieth more requests at most'),
  ...ACCESS_OPTIONS,
  columns: {
    argument: 'names',
    parse: (text: string, previous: string[] = []): string[] => [...previous, ...parseNames(text)],
    without: 'all',
    meaning:
      'Columns in the order wanted, separated by commas; repeatable; a name with a comma in double quotes. ' +
      '`a.b` is a field within `a`. Letter case counts only where names differ by nothing else; a column named ' +
      'twice comes once',
  },
  limit: {
    ...whole('rows', 0, Number.MAX_SAFE_INTEGER),
    without: 'all rows; 40 for a table that is no file',
    meaning: 'Rows at most',
  },
  format: {
    ...choice('name', SCAN_FORMATS),
    without: 'by the ending of `--output`, else `table` on a terminal, `ndjson` with `--json`, `csv` otherwise',
    meaning: `What to write: ${SCAN_FORMATS.map((name) => `\`${name}\``).join(', ')}`,
  },
  output: {
    short: 'o',
    ...file,
    without: 'standard output; `pack` needs one',
    meaning: 'File to write, complete or not at all; `-` is standard output',
  },
  view: {
    ...choice('name', VIEWS),
    without: 'raw',
    meaning:
      'How Parquet files look: as they are (`raw`), or with the same rows in columns of fixed width already decoded ' +
      '(`decoded`), so that whoever reads them need not',
  },
  foreground: {
    ...toggle('Stay in the foreground, until it is stopped or unmounted'),
    without: 'on, unless --daemon is given',
  },
  daemon: toggle('Go to the background as soon as the mount answers; what keeps it from that is told, and ends with 1'),
  pidFile: {
    ...file,
    without: 'none',
    meaning: 'File with the number of the process, while something is mounted',
  },
  logFile: {
    ...file,
    without: 'standard error; nowhere with `--daemon`',
    meaning: 'File that the log is appended to',
  },
  allowOther: {
    ...toggle(
      'Other users may read the mount too; those of an ordinary user need the line user_allow_other in /etc/fuse.conf',
    ),
    negatable: true,
    without: "on for root's mounts, else off",
  },
  lazy: toggle('Take it away at once, from under programs that have files of it open too: those get errors'),
  explain: toggle("Print the plan of the first file, all of it with `--json`; reads nothing but that file's footer"),
  stats: toggle('Report on standard error what the scan did, or the mount when it is unmounted; as JSON with `--json`'),
  prefetchDepth: {
    argument: 'n|auto',
    parse: orAuto(wholeFrom(1, PREFETCH_DEPTH_MAX)),
    without: String(PREFETCH_DEPTH_DEFAULT),
    meaning: 'Row groups in flight; 1 is none ahead of the one being read',
  },
  maxGap: {
    argument: 'bytes|auto',
    parse: orAuto(bytesFrom(0, REQUEST_BYTES_MAX)),
    without: 'auto (latency × bandwidth)',
    meaning: 'Largest gap between two ranges that one request reads over',
  },
  cacheDir: {
    argument: 'folder',
    takes: 'folder',
    parse: (text: string): string => text,
    without: 'none',
    meaning:
      'Keep what is read in this folder, and read it from there the next time; any number of processes may share one, ' +
      'and it may be deleted at any time',
  },
  cacheSize: {
    ...bytes(CACHE_BYTES_MIN, 2 ** 50),
    without: formatBytes(CACHE_BYTES_DEFAULT),
    meaning: 'Bytes that `--cache-dir` takes on disk at most; what was not used for longest goes first',
  },
  decoders: { ...whole('n', 1, 64), without: 'cores − 1', meaning: 'Decoder threads' },
  memory: {
    ...bytes(MEMORY_BYTES_MIN, MEMORY_BYTES_MAX),
    without: formatBytes(MEMORY_BYTES_DEFAULT),
    meaning: 'Hard cap on bytes in flight, buffered and decoded',
  },
  preserveOrder: {
    ...toggle('Rows in the order of the files; without it, in the order they get ready'),
    negatable: true,
    without: 'on',
  },
  dictionary: toggle('Strings as Arrow dictionaries (`--format arrow`)'),
  batchRows: { ...whole('n', 1, 2 ** 20), without: 'by memory', meaning: 'Rows of a record batch at most' },
  verifyChecksums: { ...toggle('Check the CRC of pages that have one'), negatable: true, without: 'on' },
  rows: { ...whole('n', 1000, 50_000_000), without: '1,000,000', meaning: 'Rows that the demo makes, about' },
  json: toggle('JSON on standard output, on one line, and nothing else there'),
  config: {
    ...file,
    without: 'none',
    meaning: 'YAML file with sources and settings',
  },
  source: {
    argument: 'name=location',
    parse: (text: string, previous: NamedLocation[] = []): NamedLocation[] => [
      ...previous,
      ...parseNamedLocations(text),
    ],
    without: 'those of the file',
    meaning: 'A source by its name; repeatable, and in the variable several with spaces between',
  },
  allowLocations: toggle('Requests may name any location that the daemon can reach, not only its sources'),
  maxScans: {
    ...whole('n', 1, SCANS_MAX),
    without: String(SCANS_DEFAULT),
    meaning: 'Scans at a time; more are answered with 503',
  },
  clientTimeout: {
    argument: 'time',
    parse: parseDuration,
    without: seconds(CLIENT_MS_DEFAULT),
    meaning: 'Time in which a client takes nothing of its answer, after which its scan is ended',
  },
  logLevel: {
    ...choice('level', LOG_LEVELS),
    without: 'info',
    meaning: `Least level that is logged: ${LOG_LEVELS.map((name) => `\`${name}\``).join(', ')}`,
  },
  logFormat: {
    ...choice('format', LOG_FORMATS),
    without: 'auto',
    meaning: 'Log lines on standard error for people (`human`) or programs (`json`); `auto`: human on a terminal',
  },
  man: toggle('The page in roff, as man shows it'),
  debug: toggle('Stack traces of errors'),
} satisfies Record<string, OptionSpec<never> | OptionSpec<boolean> | { parse: (text: string) => unknown }>;

export type OptionName = keyof typeof OPTIONS;

/** Values of options as commands see them; absent when neither the command line nor the environment gives them. */
export type OptionValues = { readonly [K in OptionName]?: ReturnType<(typeof OPTIONS)[K]['parse']> };

/** Where a value that is there comes from. */
export type OptionOrigins = { readonly [K in OptionName]?: 'flag' | 'variable' };

export function specOf(name: OptionName): OptionSpec<unknown> {
  return OPTIONS[name] as OptionSpec<unknown>;
}

/** ` <bytes>`, ` [bytes]` when it may be left out, or nothing for a switch. */
export function valueForm({ argument, preset }: OptionSpec<unknown>): string {
  if (argument === undefined) return '';
  return preset === undefined ? ` <${argument}>` : ` [${argument}]`;
}

/** `--max-gap` */
export function flagOf(name: OptionName): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** `QANAT_MAX_GAP` */
export function variableOf(name: OptionName): string {
  return `QANAT${flagOf(name).slice(1).replaceAll('-', '_').toUpperCase()}`;
}
