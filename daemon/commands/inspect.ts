/** `qanat inspect`: a file's metadata, as a table for people or in ClickHouse's shape for programs. */
import type { FileMetadata } from '../../decode/index.ts';
import type { FileVersion } from '../../fetcher/index.ts';
import { formatBytes, formatCount, formatCounted } from '../argument.ts';
import { columnBounds } from '../output/column-bounds.ts';
import { type MetadataSummary, shortTypeText, statisticText, summarizeMetadata } from '../output/file-metadata.ts';
import { writeStdout } from '../output/output.ts';
import { alignRows, cutText, printable } from '../output/printable.ts';
import { type CommandContext, onlyFile, printJson, withSource } from './command.ts';
import { ROW_GROUPS_SHOWN_MAX } from './limits.ts';

export async function inspect(context: CommandContext): Promise<void> {
  const url = context.operands[0]!;
  const { file, metadata } = await withSource(url, context, async (source) => {
    const only = await onlyFile(source);
    const { length } = only;
    return { file: { path: source.shown(only.path), length }, metadata: await (await source.open(only)).footer() };
  });
  const summary = summarizeMetadata(metadata);
  if (context.options.json) await printJson(summary);
  else await writeStdout(metadataText(file, metadata, summary));
}

/** Widest bound or name that is shown. */
const TEXT_CHARACTERS = 36;

/** Columns of the terminal: tables are cut to them, as those of `scan`. */
function width(): number {
  return process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY;
}

function metadataText(
  file: Pick<FileVersion, 'path' | 'length'>,
  metadata: FileMetadata,
  summary: MetadataSummary,
): string {
  const bytes = formatCounted(file.length, 'byte');
  const head = alignRows([
    ['file', printable(file.path)],
    [
      'size',
      `${file.length < 1024 ? bytes : `${formatBytes(file.length)} (${bytes})`}, footer ${formatBytes(metadata.footerBytes)}`,
    ],
    ['rows', `${formatCount(summary.num_rows)} in ${formatCounted(summary.num_row_groups, 'row group')}`],
    [
      'data',
      `${formatBytes(summary.total_compressed_size)}, uncompressed ${formatBytes(summary.total_uncompressed_size)}`,
    ],
    ['written by', printable(metadata.createdBy ?? 'unknown')],
  ]);
  return [head, columnsText(metadata, summary), rowGroupsText(summary), brokenText(metadata)]
    .filter((part) => part !== '')
    .join('\n');
}

function columnsText(metadata: FileMetadata, summary: MetadataSummary): string {
  const header = [
    'column',
    'type',
    'logical type',
    'null',
    'codec',
    'encodings',
    'size',
    'saved',
    'nulls',
    'min',
    'max',
  ];
  const rows = metadata.leaves.map((leaf, k) => {
    const column = summary.columns[k]!;
    const { nulls, min, max } = totalsOf(metadata, k);
    return [
      cutText(printable(column.path), TEXT_CHARACTERS),
      leaf.typeLength > 0 ? `${column.physical_type}(${leaf.typeLength})` : column.physical_type,
      shortTypeText(leaf.logicalType),
      leaf.maxRepetitionLevel > 0 ? 'list' : leaf.maxDefinitionLevel > 0 ? 'yes' : 'no',
      column.compression,
      column.encodings.join(' '),
      formatBytes(column.total_compressed_size),
      column.space_saved,
      nulls,
      min,
      max,
    ];
  });
  return alignRows([header, ...rows], new Set([6, 7, 8]), width());
}

/** Nulls and bounds over all row groups; '' for what the file does not tell, `""` for an empty text. */
function totalsOf({ leaves, rowGroups }: FileMetadata, k: number): { nulls: string; min: string; max: string } {
  const leaf = leaves[k]!;
  const chunks = rowGroups.map((group) => group.columns[k]!);
  const known = chunks.every(({ statistics }) => statistics?.nullCount !== undefined);
  const nulls = chunks.reduce((sum, { statistics }) => sum + (statistics?.nullCount ?? 0), 0);
  const bounds = columnBounds(leaf, chunks);
  const text = (bytes: Uint8Array | undefined): string => {
    const value = statisticText(leaf, bytes) ?? undefined;
    return value === '' ? '""' : cutText(printable(value ?? ''), TEXT_CHARACTERS);
  };
  return { nulls: known ? formatCount(nulls) : '', min: text(bounds?.min), max: text(bounds?.max) };
}

function rowGroupsText({ row_groups }: MetadataSummary): string {
  const header = ['row group', 'rows', 'offset', 'size', 'uncompressed', 'statistics', 'Bloom filters'];
  const rows = row_groups
    .slice(0, ROW_GROUPS_SHOWN_MAX)
    .map((group, k) => [
      String(k),
      formatCount(group.num_rows),
      formatCount(group.file_offset),
      formatBytes(group.total_compressed_size),
      formatBytes(group.total_uncompressed_size),
      `${group.columns.filter((chunk) => chunk.statistics.min !== null).length} of ${group.num_columns}`,
      String(group.columns.filter((chunk) => chunk.bloom_filter_bytes !== null).length),
    ]);
  const more = row_groups.length - rows.length;
  const rest = more > 0 ? `${formatCounted(more, 'more row group')}: --json shows all\n` : '';
  return alignRows([header, ...rows], new Set([0, 1, 2, 3, 4, 5, 6]), width()) + rest;
}

function brokenText({ rowGroups, leaves }: FileMetadata): string {
  const lines: string[] = [];
  for (const group of rowGroups) {
    for (const chunk of group.columns) {
      if (chunk.broken === undefined) continue;
      const name = JSON.stringify(leaves[chunk.column]!.name);
      lines.push(`can't be read: column ${name} of row group ${group.ordinal}: ${chunk.broken}`);
      if (lines.length >= ROW_GROUPS_SHOWN_MAX) return `${lines.map(printable).join('\n')}\n…\n`;
    }
  }
  return lines.map((line) => `${printable(line)}\n`).join('');
}
