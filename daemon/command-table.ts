/** The commands: what each takes, which options it has, and examples, for the command line, its help and the README. */
import type { OptionName } from './options.ts';
import { SOURCE_OPTION_NAMES } from './source-options.ts';

export interface CommandSpec {
  readonly name: string;
  /** Positional arguments as help shows them. */
  readonly operands: string;
  readonly summary: string;
  readonly options: readonly OptionName[];
  readonly examples: ReadonlyArray<readonly [line: string, what: string]>;
}

const SOURCE: readonly OptionName[] = SOURCE_OPTION_NAMES;

const DAEMON: readonly OptionName[] = [
  'config',
  'source',
  'listen',
  'metrics',
  'insecureListen',
  'memory',
  'decoders',
  'verifyChecksums',
  'prefetchDepth',
  'maxGap',
  ...SOURCE,
  'allowLocations',
  'maxScans',
  'clientTimeout',
  'drainTimeout',
  'logLevel',
  'logFormat',
];

export const COMMANDS = {
  serve: {
    name: 'serve',
    operands: '<dir...>',
    summary: 'Serve the Parquet files below folders, or of packed files, to other machines',
    options: [
      'listen',
      'http',
      's3',
      's3Keys',
      's3Bucket',
      's3Domain',
      'all',
      'pin',
      'rdmaDevice',
      'align',
      'watch',
      'watchInterval',
      'tlsCert',
      'tlsKey',
      'tlsClientCa',
      'tokens',
      'hostNames',
      'insecureListen',
      'maxConnections',
      'maxOutstanding',
      'maxRead',
      'maxBuffered',
      'sendMemory',
      'stallTimeout',
      'drainTimeout',
      'logLevel',
      'logFormat',
      'debug',
    ],
    examples: [
      ['qanat serve /data/lake', 'on 127.0.0.1:7400; one JSON line when ready'],
      ['qanat serve ./a ./b --listen 127.0.0.1:0 --http none', 'two folders, as a/… and b/…, on a free port'],
      ['qanat serve /data/lake --watch', 'new and rewritten files too, soon after they are there'],
      ['qanat serve /data/lake --s3 127.0.0.1:7485', 'as the bucket lake of an S3 API too'],
      [
        'qanat serve /data/lake --listen 0.0.0.0:7400 --tls-cert cert.pem --tls-key key.pem --tokens tokens',
        'to other machines, encrypted, to who shows a token',
      ],
      ['qanat serve lake.qanat --pin 8GiB', 'what qanat pack has written, kept in memory'],
      ['qanat serve /data/lake --rdma-device auto', 'over RDMA too, to clients that have a device'],
    ],
  },
  pack: {
    name: 'pack',
    operands: '<dir...>',
    summary: 'Write what serve would serve as one file, for any place that holds files',
    options: ['output', 'all', 'align', 'json', 'debug'],
    examples: [
      ['qanat pack /data/lake -o lake.qanat', 'the Parquet files of a folder, under their paths in it'],
      ['qanat pack ./a ./b -o both.qanat --align 4KiB', 'two folders, as a/… and b/…, on borders of pages'],
      ["qanat scan 'lake.qanat!/2024/*.parquet'", 'what is in it, as any other location'],
    ],
  },
  ls: {
    name: 'ls',
    operands: '<url>',
    summary: 'List the files that a location means',
    options: [...SOURCE, 'json', 'debug'],
    examples: [
      ['qanat ls rdma://host:7400', 'all Parquet files of a server'],
      ["qanat ls 'rdma://host:7400/**'", 'all files of a server'],
      ["qanat ls 'rdma://host:7400/year=2024/**/*.parquet' --json", 'those a glob matches'],
    ],
  },
  inspect: {
    name: 'inspect',
    operands: '<url>',
    summary: "Show a Parquet file's metadata (footer)",
    options: [...SOURCE, 'json', 'debug'],
    examples: [
      ['qanat inspect rdma://host:7400/lineitem.parquet', 'columns, sizes, encodings, row groups'],
      ['qanat inspect ./lineitem.parquet --json', "with the field names of ClickHouse's ParquetMetadata"],
    ],
  },
  scan: {
    name: 'scan',
    operands: '<url>',
    summary: 'Read rows, as Arrow, CSV, NDJSON, a table, a count or checksums',
    options: [
      'columns',
      'limit',
      'format',
      'output',
      'explain',
      'stats',
      'prefetchDepth',
      'maxGap',
      'cacheDir',
      'cacheSize',
      'decoders',
      'memory',
      'preserveOrder',
      'dictionary',
      'batchRows',
      'verifyChecksums',
      'metrics',
      ...SOURCE,
      'json',
      'debug',
    ],
    examples: [
      ['qanat scan rdma://host:7400/lineitem.parquet', 'the first rows as a table'],
      ["qanat scan 'rdma://host:7400/**/*.parquet' --format count", 'rows, from footers alone'],
      [
        "qanat scan 's3://bucket/year=2024/*.parquet' --columns id --limit 10",
        'a bucket, with the credentials of this machine',
      ],
      ["qanat scan 'https://host/t.parquet' --columns id --limit 10", 'a file of any web server, by range'],
      ['qanat scan rdma://host/t.parquet --columns id,name -o t.arrows', 'two columns as an Arrow IPC stream'],
      ['qanat scan rdma://host/t.parquet --format csv | head', 'CSV, as much of it as is read'],
      ['qanat scan rdma://host/t.parquet --format checksum', 'a SHA-256 of the values of each column'],
      ['qanat scan rdma://host/t.parquet --columns id --explain', 'which bytes would be fetched, in which requests'],
    ],
  },
  mount: {
    name: 'mount',
    operands: '<url> <dir>',
    summary: 'Show the files of a location in a folder, for any program to read',
    options: [
      'view',
      'foreground',
      'daemon',
      'pidFile',
      'logFile',
      'allowOther',
      'watchInterval',
      'drainTimeout',
      'prefetchDepth',
      'maxGap',
      'cacheDir',
      'cacheSize',
      'decoders',
      'memory',
      'verifyChecksums',
      'metrics',
      'stats',
      'logLevel',
      'logFormat',
      ...SOURCE,
      'json',
      'debug',
    ],
    examples: [
      ['qanat mount rdma://host:7400 /mnt/lake', 'all files of a server; Ctrl-C unmounts'],
      ['qanat mount rdma://host:7400 /mnt/lake --view decoded', 'with columns of fixed width already decoded'],
      [
        'qanat mount rdma://host:7400/2024 /mnt/lake --daemon --pid-file /run/lake.pid --log-file /var/log/lake.log',
        'a folder, in the background',
      ],
      ['qanat mount lake.qanat /mnt/lake --stats', 'what is in a packed file; at the end, what was done with it'],
    ],
  },
  unmount: {
    name: 'unmount',
    operands: '<dir>',
    summary: 'Take a mount away, also one that a killed process left behind',
    options: ['lazy', 'drainTimeout', 'json', 'debug'],
    examples: [
      ['qanat unmount /mnt/lake', 'waits for open files, and names their programs if they stay'],
      ['qanat unmount /mnt/lake --lazy', 'at once, whoever reads'],
    ],
  },
  daemon: {
    name: 'daemon',
    operands: '',
    summary: 'Stay, and answer scans of named sources over HTTP',
    options: [...DAEMON, 'debug'],
    examples: [
      ['qanat daemon --config qanat.yaml', 'sources and settings of a file; SIGHUP reads it again'],
      ['qanat daemon --source lake=rdma://host:7400', 'one source and no file'],
      ['qanat daemon --config qanat.yaml --memory 2GiB', 'with another memory than the file says'],
    ],
  },
  config: {
    name: 'config',
    operands: '<check> [file]',
    summary: 'Check a configuration of the daemon and show what holds, and where it comes from',
    options: [...DAEMON, 'json', 'debug'],
    examples: [
      ['qanat config check qanat.yaml', 'every setting with its place; 2 when the file makes no sense'],
      ['qanat config check qanat.yaml --json', 'the same, or the mistakes, for programs'],
      ['qanat config check', 'what variables and defaults alone amount to'],
    ],
  },
  'verbs-check': {
    name: 'verbs-check',
    operands: '<host:port>',
    summary: 'Check whether reads of a server go over RDMA: devices, limits, queue pair, bytes against TCP, latency',
    options: ['rdmaDevice', 'busyPoll', 'stallTimeout', 'tokenFile', 'json', 'debug'],
    examples: [
      ['qanat verbs-check host:7400', 'step by step; 1 at the first one that fails, with what to do'],
      ['qanat verbs-check host:7400 --rdma-device mlx5_0 --busy-poll', 'with this device, asking all the time'],
      ['qanat verbs-check host:7400 --json', 'the same for programs'],
    ],
  },
  cp: {
    name: 'cp',
    operands: '<url> <file>',
    summary: 'Copy one file, byte for byte',
    options: ['cacheDir', 'cacheSize', ...SOURCE, 'json', 'debug'],
    examples: [
      ['qanat cp rdma://host:7400/lineitem.parquet .', 'into this folder; one file, no folder and no glob of several'],
      ['qanat cp rdma://host:7400/lineitem.parquet - | sha256sum', 'to standard output'],
    ],
  },
  demo: {
    name: 'demo',
    operands: '',
    summary: 'Make a table, serve it, scan it back, mount it, check every value against DuckDB (npm start)',
    options: ['rows', 'decoders', 'memory', 'prefetchDepth', 'json', 'debug'],
    examples: [
      ['qanat demo', 'a million rows'],
      ['qanat demo --rows 5000000 --memory 256MiB', 'more rows, less memory'],
    ],
  },
  completion: {
    name: 'completion',
    operands: '<shell>',
    summary: 'Print a completion script for bash, zsh or fish',
    options: ['debug'],
    examples: [
      ['source <(qanat completion bash)', 'in this shell, or every one when it stands in ~/.bashrc'],
      ['qanat completion fish > ~/.config/fish/completions/qanat.fish', 'for fish'],
    ],
  },
  help: {
    name: 'help',
    operands: '[command]',
    summary: 'Show the manual of a command, or of qanat',
    options: ['man', 'debug'],
    examples: [
      ['qanat help scan', 'the same as qanat scan --help'],
      ['qanat help scan --man | man -l -', 'as a manual page'],
    ],
  },
} satisfies Record<string, CommandSpec>;

export type CommandName = keyof typeof COMMANDS;
