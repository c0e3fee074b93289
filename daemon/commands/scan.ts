/** `qanat scan`: rows of a location to a sink, or what footers say about them. */
import { basename, extname } from 'node:path';
import { DecodeError } from '../../decode/index.ts';
import type { Source } from '../../vfs/index.ts';
import { formatBytes, formatCount, formatCounted } from '../argument.ts';
import { CommandError } from '../errors.ts';
import type { OptionValues, ScanFormat } from '../options.ts';
import { ArrowStreamSink } from '../output/arrow-stream.ts';
import { ChecksumSink } from '../output/checksum.ts';
import { csvFormat } from '../output/csv.ts';
import { ndjsonFormat } from '../output/ndjson.ts';
import { type Output, withOutput, writeStdout } from '../output/output.ts';
import { planText } from '../output/plan-text.ts';
import { printable } from '../output/printable.ts';
import { canShowProgress, showProgress } from '../output/progress.ts';
import { reportText } from '../output/report-text.ts';
import { LineSink } from '../output/row-text.ts';
import type { Sink } from '../output/sink.ts';
import { TableSink } from '../output/table.ts';
import type { ClientMetrics } from '../scan/client-metrics.ts';
import { type EngineOptions, ScanEngine } from '../scan/engine.ts';
import { footersReport, type ScanReport } from '../scan/report.ts';
import { Scan, type ScanOptions } from '../scan/scan.ts';
import { withClientEndpoint } from './client-endpoint.ts';
import { type CommandContext, printJson, tellDone, withSource } from './command.ts';
import { countRows, explainScan } from './footers.ts';
import { TABLE_ROWS_DEFAULT } from './limits.ts';
import { refuseOwnSource } from './own-source.ts';

const ENDINGS: Readonly<Record<string, ScanFormat>> = {
  '.arrow': 'arrow',
  '.arrows': 'arrow',
  '.ipc': 'arrow',
  '.csv': 'csv',
  '.ndjson': 'ndjson',
  '.jsonl': 'ndjson',
  '.json': 'ndjson',
  '.txt': 'table',
};

export async function scan(context: CommandContext): Promise<void> {
  const { options } = context;
  if (options.explain) return explain(context);
  const toFile = options.output !== undefined && options.output !== '-';
  const format = chooseFormat(options, toFile);
  check(options, format, toFile);
  await withClientEndpoint(options, (metrics) => scanSource(context, format, toFile, metrics));
}

async function scanSource(
  context: CommandContext,
  format: ScanFormat,
  toFile: boolean,
  metrics: ClientMetrics | undefined,
): Promise<void> {
  const { options } = context;
  await withSource(context.operands[0]!, context, async (source) => {
    metrics?.addSource(source);
    await refuseOwnSource(source, options.output);
    try {
      if (format === 'count') return await count(source, context);
      const report = await scanRows(source, format, toFile, context, metrics);
      tellStats(report, options);
      if (toFile && options.json && format !== 'checksum') {
        await printJson({ output: options.output, format, ...report });
      }
    } catch (error) {
      throw error instanceof DecodeError ? await amongFiles(error, source) : error;
    }
  });
}

async function explain(context: CommandContext): Promise<void> {
  const { operands, options } = context;
  const plan = await withSource(operands[0]!, context, (source) => explainScan(source, options));
  if (options.json) await printJson(plan);
  else await writeStdout(planText(plan));
}

/** The error of one of several files, with how to go on without it. */
async function amongFiles(error: DecodeError, source: Source): Promise<DecodeError> {
  const { length } = await source.list().catch(() => []);
  if (length < 2 || error.place.file === undefined) return error;
  const reason = `${error.reason}; it is one of ${formatCounted(length, 'file')}, a glob without it scans the others`;
  return Object.assign(new DecodeError(error.code, reason, error.place), { cause: error });
}

function chooseFormat(options: OptionValues, toFile: boolean): ScanFormat {
  if (options.format !== undefined) return options.format;
  if (toFile) return formatOf(options.output!);
  if (options.json) return 'ndjson';
  return process.stdout.isTTY ? 'table' : 'csv';
}

function formatOf(path: string): ScanFormat {
  const ending = extname(path);
  const format = ENDINGS[ending.toLowerCase()];
  if (format !== undefined) return format;
  const what = ending === '' ? `${basename(path)}, which has no ending` : ending;
  const endings = Object.keys(ENDINGS).join(', ');
  throw new CommandError(
    'USAGE',
    `no format for ${what}: name one with --format, or end the file in one of ${endings}`,
  );
}

function check(options: OptionValues, format: ScanFormat, toFile: boolean): void {
  if (format === 'checksum' && options.preserveOrder === false) {
    throw new CommandError(
      'USAGE',
      'checksums are of rows in order: --format checksum and --no-preserve-order exclude each other',
    );
  }
  if (options.json && !toFile && !['ndjson', 'count', 'checksum'].includes(format)) {
    throw new CommandError(
      'USAGE',
      `--json and --format ${format} both want standard output: write the rows to a file with -o`,
    );
  }
  if (format === 'arrow' && !toFile && process.stdout.isTTY) {
    throw new CommandError(
      'USAGE',
      'an Arrow stream is nothing for a terminal: write it to a file with -o, or into a pipe',
    );
  }
}

async function count(source: Source, { options, interruption }: CommandContext): Promise<void> {
  const began = performance.now();
  const { rows, files } = await countRows(source, options);
  const bytes = await withOutput(options.output, interruption.signal, async (output) => {
    await output.write(Buffer.from(options.json ? `${JSON.stringify({ rows, files })}\n` : `${rows}\n`));
  });
  if (options.output !== undefined && options.output !== '-') tellWritten(rows, bytes, options);
  tellStats(footersReport(source, rows, performance.now() - began), options);
}

function tellStats(report: ScanReport, { stats, json }: OptionValues): void {
  if (stats) process.stderr.write(json ? `${JSON.stringify(report)}\n` : reportText(report));
}

async function scanRows(
  source: Source,
  format: ScanFormat,
  toFile: boolean,
  context: CommandContext,
  metrics: ClientMetrics | undefined,
): Promise<ScanReport> {
  const { options, interruption } = context;
  const { signal } = interruption;
  // A table that nobody limited is for a look at the data; a file is to be complete.
  const look = format === 'table' && !toFile && options.limit === undefined;
  const limit = look ? TABLE_ROWS_DEFAULT : options.limit;
  const engine = new ScanEngine(engineOptions(options));
  metrics?.addEngine(engine);
  try {
    const scan = await Scan.open(engine, source, { ...scanOptions(options, limit), signal });
    try {
      const files = await source.list();
      let report!: ScanReport;
      const bytes = await withOutput(options.output, signal, async (output) => {
        const sink = makeSink(format, engine, scan, output, toFile, options);
        const fileBytes = files.reduce((sum, file) => sum + file.length, 0);
        const share = scan.plan.totals.bytesNeeded / Math.max(1, files[0]!.length);
        const hide = showProgress('scan', canShowProgress(!toFile && process.stdout.isTTY === true), () => {
          const { bytes, rows } = scan.report();
          return { bytes: bytes.used, bytesTotal: fileBytes * share, rows };
        });
        try {
          await pump(scan, sink);
        } finally {
          hide();
        }
        report = scan.report();
        if (sink instanceof ChecksumSink) await writeChecksums(sink, report, output, options);
      });
      if (look) tellLimit(report.rows, scan, files.length);
      if (toFile) tellWritten(report.rows, bytes, options);
      return report;
    } finally {
      await scan.close();
    }
  } finally {
    await engine.close();
  }
}

async function pump(scan: Scan, sink: Sink): Promise<void> {
  await sink.begin();
  for (;;) {
    const batch = await scan.nextBatch();
    if (batch === undefined) break;
    try {
      await sink.write(batch);
    } finally {
      batch.release();
    }
  }
  await sink.end();
}

function makeSink(
  format: ScanFormat,
  engine: ScanEngine,
  scan: Scan,
  output: Output,
  toFile: boolean,
  options: OptionValues,
): Sink {
  const { fields } = scan;
  switch (format) {
    case 'arrow':
      return new ArrowStreamSink(scan.schema, (batch) => scan.toArrow(batch), output);
    case 'csv':
      return new LineSink(engine.pool, fields, csvFormat(fields), output);
    case 'ndjson':
      return new LineSink(engine.pool, fields, ndjsonFormat(fields), output);
    case 'table': {
      const terminal = !toFile && process.stdout.isTTY && options.json !== true;
      return new TableSink(engine.pool, fields, output, terminal ? process.stdout.columns : Number.POSITIVE_INFINITY);
    }
    case 'checksum':
      return new ChecksumSink(engine.pool, fields);
    case 'count':
      throw new Error('rows are not read to count them');
  }
}

async function writeChecksums(
  sink: ChecksumSink,
  { rows }: ScanReport,
  output: Output,
  { json }: OptionValues,
): Promise<void> {
  const columns = sink.checksums();
  const lines = columns.map(
    ({ sha256, name, nulls }) => `${sha256}  ${rows} rows  ${nulls} nulls  ${printable(name)}\n`,
  );
  await output.write(Buffer.from(json ? `${JSON.stringify({ rows, columns })}\n` : lines.join('')));
}

function tellWritten(rows: number, bytes: number, options: OptionValues): void {
  tellDone(`${formatCounted(rows, 'row')}, ${formatBytes(bytes)} to ${options.output}`, options);
}

function tellLimit(rows: number, scan: Scan, files: number): void {
  const known = scan.plan.rowGroups.reduce((sum, group) => sum + group.numRows, 0);
  if (rows < TABLE_ROWS_DEFAULT || (files === 1 && known <= rows)) return;
  process.stderr.write(`first ${formatCount(rows)} rows: --limit shows more, --format csv all\n`);
}

function engineOptions({ memory, decoders, verifyChecksums }: OptionValues): EngineOptions {
  return {
    ...(memory === undefined ? {} : { memoryBytes: memory }),
    ...(decoders === undefined ? {} : { decoders }),
    ...(verifyChecksums === undefined ? {} : { verifyChecksums }),
  };
}

function scanOptions(options: OptionValues, limit: number | undefined): ScanOptions {
  const { columns, batchRows, prefetchDepth, maxGap, preserveOrder, dictionary } = options;
  return {
    ...(columns === undefined ? {} : { columns }),
    ...(limit === undefined ? {} : { limit }),
    ...(batchRows === undefined ? {} : { batchRows }),
    ...(prefetchDepth === undefined ? {} : { prefetchDepth }),
    ...(maxGap === undefined ? {} : { maxGap }),
    ...(preserveOrder === undefined ? {} : { preserveOrder }),
    ...(dictionary === undefined ? {} : { dictionary }),
  };
}
