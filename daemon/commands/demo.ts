/**
 * `qanat demo`, which is `npm start`: makes a table, serves it from a process of its own, scans it back over rdma://,
 * checks every value against DuckDB by a checksum per column, and has DuckDB read it from mounts, where those can be.
 * Leaves nothing behind.
 */
import { rmSync } from 'node:fs';
import { mkdtemp, stat } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FileMetadata } from '../../decode/index.ts';
import { openSource, type Source } from '../../vfs/index.ts';
import { formatBytes, formatCount, formatMs } from '../argument.ts';
import { CommandError } from '../errors.ts';
import { ChecksumSink, type ColumnChecksum } from '../output/checksum.ts';
import { writeStdout } from '../output/output.ts';
import { alignRows } from '../output/printable.ts';
import { reportLines } from '../output/report-text.ts';
import { ScanEngine } from '../scan/engine.ts';
import type { ScanReport } from '../scan/report.ts';
import { Scan, type ScanOptions } from '../scan/scan.ts';
import { type CommandContext, printJson } from './command.ts';
import { CommandProcess } from './command-process.ts';
import { demoMount, type MountFigures } from './demo-mount.ts';
import { type DemoTable, makeDemoTable } from './demo-table.ts';

const ROWS_DEFAULT = 1_000_000;

interface ColumnFigures {
  readonly name: string;
  readonly bytesFetched: number;
  readonly bytesDecoded: number;
  readonly decodeMs: number;
  readonly sha256: string;
  readonly equal: boolean;
}

interface Scanned {
  readonly report: ScanReport;
  readonly bytesDecoded: ReadonlyMap<string, number>;
  readonly metadata: FileMetadata;
  readonly checksums: readonly ColumnChecksum[];
}

export async function demo(context: CommandContext): Promise<void> {
  const { options, interruption } = context;
  const { signal } = interruption;
  const say = async (text: string): Promise<void> => {
    signal.throwIfAborted();
    if (!options.json) await writeStdout(text);
  };
  const folder = await mkdtemp(join(tmpdir(), 'qanat-demo-'));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  process.on('exit', remove);
  let server: CommandProcess | undefined;
  try {
    const file = join(folder, 'lineitem.parquet');
    await say(`Making a lineitem of about ${formatCount(options.rows ?? ROWS_DEFAULT)} rows with DuckDB…\n`);
    const table = await makeDemoTable(file, options.rows ?? ROWS_DEFAULT);
    const fileBytes = (await stat(file)).size;
    server = await CommandProcess.start(['serve', folder, '--listen', '127.0.0.1:0', '--http', 'none'], signal);
    const root = `rdma://${String(server.ready.rdma)}`;
    const url = `${root}/lineitem.parquet`;
    await say(`Serving ${formatBytes(fileBytes)} in ${folder}\nScanning ${url}\n\n`);
    const scanned = await scanBack(url, context);
    const columns = figuresOf(table, scanned);
    const mounted = await demoMount(root, file, folder, signal);
    const serverExit = await server.stop();
    await tell(context, url, table, fileBytes, scanned.report, columns, mounted);
    const wrong = columns.filter(({ equal }) => !equal).map(({ name }) => name);
    if ('views' in mounted && !isEqual(mounted)) wrong.push('what DuckDB read from a mount');
    if (wrong.length > 0 || scanned.report.rows !== table.rows) {
      throw new CommandError('CHECK', `what was scanned is not what DuckDB reads: ${wrong.join(', ') || 'rows'}`);
    }
    if (serverExit !== 0) throw new CommandError('SERVER', `the server ended with ${serverExit}`);
  } finally {
    await server?.stop();
    remove();
    process.off('exit', remove);
  }
}

/** Once as fast as a program takes Arrow batches, which is timed, and once for the checksums. */
async function scanBack(url: string, { options, interruption }: CommandContext): Promise<Scanned> {
  const { memory, decoders, prefetchDepth } = options;
  const source = await openSource(url);
  try {
    const engine = new ScanEngine({
      ...(memory === undefined ? {} : { memoryBytes: memory }),
      ...(decoders === undefined ? {} : { decoders }),
    });
    const scanOptions: ScanOptions = {
      signal: interruption.signal,
      ...(prefetchDepth === undefined ? {} : { prefetchDepth }),
    };
    try {
      const timed = await timedScan(engine, source, scanOptions);
      const checksums = await checksumScan(engine, source, scanOptions);
      const [file] = await source.list();
      const metadata = await (await source.open(file!)).footer();
      return { ...timed, metadata, checksums };
    } finally {
      await engine.close();
    }
  } finally {
    await source.close();
  }
}

async function timedScan(engine: ScanEngine, source: Source, options: ScanOptions) {
  const scan = await Scan.open(engine, source, options);
  const names = scan.schema.fields.map(({ name }) => name);
  const bytesDecoded = new Map<string, number>();
  for await (const batch of scan) {
    for (const [k, name] of names.entries()) {
      bytesDecoded.set(name, (bytesDecoded.get(name) ?? 0) + batch.data.children[k]!.byteLength);
    }
  }
  return { report: scan.report(), bytesDecoded };
}

async function checksumScan(engine: ScanEngine, source: Source, options: ScanOptions): Promise<ColumnChecksum[]> {
  const scan = await Scan.open(engine, source, options);
  try {
    const sink = new ChecksumSink(engine.pool, scan.fields);
    for (let batch = await scan.nextBatch(); batch !== undefined; batch = await scan.nextBatch()) {
      try {
        await sink.write(batch);
      } finally {
        batch.release();
      }
    }
    return sink.checksums();
  } finally {
    await scan.close();
  }
}

function figuresOf(table: DemoTable, { report, bytesDecoded, metadata, checksums }: Scanned): ColumnFigures[] {
  return checksums.map((ours, k) => {
    const { name, rows, nulls, sha256 } = ours;
    const theirs = table.checksums[k];
    const chunks = metadata.rowGroups.map((group) => group.columns[k]!);
    return {
      name,
      bytesFetched: chunks.reduce((sum, chunk) => sum + chunk.totalCompressedSize, 0),
      bytesDecoded: bytesDecoded.get(name) ?? 0,
      decodeMs: report.columnMs[name] ?? 0,
      sha256,
      equal: theirs?.name === name && theirs.rows === rows && theirs.nulls === nulls && theirs.sha256 === sha256,
    };
  });
}

async function tell(
  { options }: CommandContext,
  url: string,
  table: DemoTable,
  fileBytes: number,
  report: ScanReport,
  columns: readonly ColumnFigures[],
  mounted: MountFigures | { readonly skipped: string },
): Promise<void> {
  const equal = columns.every((column) => column.equal) && report.rows === table.rows;
  const rssBytes = process.memoryUsage.rss();
  if (options.json) {
    await printJson({ url, rows: report.rows, fileBytes, equal, rssBytes, columns, report, mount: mounted });
    return;
  }
  const rate = (bytes: number, ms: number): string => (ms === 0 ? '' : `${formatBytes((bytes / ms) * 1000)}/s`);
  const header = ['column', 'fetched', 'decoded', 'decoding', 'decoded/s', 'values as in DuckDB'];
  const rows = columns.map((column) => [
    column.name,
    formatBytes(column.bytesFetched),
    formatBytes(column.bytesDecoded),
    formatMs(column.decodeMs),
    rate(column.bytesDecoded, column.decodeMs),
    column.equal ? `yes  ${column.sha256.slice(0, 12)}` : 'NO',
  ]);
  const decoded = columns.reduce((sum, column) => sum + column.bytesDecoded, 0);
  const cores = availableParallelism();
  const summary = [
    ['rows', `${formatCount(report.rows)}, DuckDB counts ${formatCount(table.rows)}`],
    [
      'decoded',
      `${formatBytes(decoded)}, ${rate(decoded, report.wallMs)} end to end on ${cores} cores, server included`,
    ],
    ['resident memory', `${formatBytes(rssBytes)} with DuckDB's`],
  ];
  await writeStdout(
    `${alignRows([header, ...rows], new Set([1, 2, 3, 4]))}\n${alignRows([...summary, ...reportLines(report).slice(1)])}\n` +
      (equal ? 'Every value is the one that DuckDB reads.\n' : 'VALUES DIFFER from those that DuckDB reads.\n') +
      `\n${mountText(mounted)}`,
  );
}

function isEqual({ views }: MountFigures): boolean {
  return Object.values(views).every(({ equal }) => equal);
}

function mountText(mounted: MountFigures | { readonly skipped: string }): string {
  if ('skipped' in mounted) return `No mount on this machine: ${mounted.skipped}\n`;
  const { fileMs, views } = mounted;
  const rows = Object.entries(views).map(([view, { firstMs, secondMs, equal, series }]) => [
    `${view} view`,
    formatMs(firstMs),
    formatMs(secondMs),
    equal ? 'yes' : 'NO',
    `${series} series`,
  ]);
  const header = ["DuckDB's query over a mount", 'first time', 'second time', 'equal', 'metrics'];
  return `${alignRows([header, ...rows], new Set([1, 2]))}the file itself: ${formatMs(fileMs)}\n`;
}
