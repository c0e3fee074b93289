/**
 * The row groups of a scan, file after file: reads each file's footer when its turn comes, plans it, and makes the
 * runs. All files of a scan must have the columns of the first, with the same types.
 */
import {
  buildFields,
  type ChunkSpec,
  type Codec,
  DecodeError,
  type Field,
  type FileMetadata,
  LEVEL_MAX,
  type LeafColumn,
  type NestedShape,
  type Physical,
  packsLevelsWrong,
  pathsOf,
  physicalName,
} from '../../decode/index.ts';
import {
  FetchError,
  type FileVersion,
  type GapEstimator,
  type PlannedRowGroup,
  planScan,
  type ScanPlan,
  type ScanRequest,
  type Transport,
} from '../../fetcher/index.ts';
import { formatCounted } from '../argument.ts';
import { isText } from '../arrow/arrow-type.ts';
import { shortTypeText } from '../output/file-metadata.ts';
import { ColumnRun } from './column-run.ts';
import { RowGroupRun } from './row-group-run.ts';
import type { RowGroupSource, ScanContext } from './scan-run.ts';

/** A file whose footer has been read. */
export interface ScanFile {
  readonly transport: Transport;
  readonly file: FileVersion;
  readonly metadata: FileMetadata;
}

type LeafPath = NonNullable<ReturnType<ReturnType<typeof pathsOf>['get']>>;

interface PlannedFile extends ScanFile {
  readonly plan: ScanPlan;
  readonly fields: readonly Field[];
  /** By leaf: the shape of nested columns. */
  readonly shapes: ReadonlyMap<number, NestedShape | undefined>;
}

export interface FileSourceOptions {
  readonly request: Omit<ScanRequest, 'policy'>;
  readonly policy: () => ScanRequest['policy'];
  readonly dictionary: boolean;
  readonly gap: GapEstimator;
}

export class FileSource implements RowGroupSource {
  readonly #files: AsyncIterator<ScanFile>;
  readonly #options: FileSourceOptions;
  readonly #homes = new WeakMap<PlannedRowGroup, PlannedFile>();
  #current: PlannedFile | undefined;
  #first: PlannedFile | undefined;
  #nextGroup = 0;
  #rowsPlanned = 0;

  constructor(files: AsyncIterator<ScanFile>, options: FileSourceOptions) {
    this.#files = files;
    this.#options = options;
  }

  /** The plan of the first file, which gives the scan its columns; undefined when there is no file. */
  async firstPlan(): Promise<ScanPlan | undefined> {
    if (this.#first === undefined) await this.#nextFile();
    return this.#first?.plan;
  }

  /** The fields that the first file's chosen columns make, in the order of the plan; after `firstPlan`. */
  get firstFields(): readonly Field[] {
    return this.#first?.fields ?? [];
  }

  /** The first file's key-values; after `firstPlan`. */
  get firstKeyValues(): FileMetadata['keyValues'] {
    return this.#first?.metadata.keyValues ?? [];
  }

  async #nextFile(): Promise<boolean> {
    const limit = this.#options.request.limit;
    if (limit !== undefined && this.#first !== undefined && this.#rowsPlanned >= limit) return false;
    const next = await this.#files.next();
    if (next.done) return false;
    const { metadata, file } = next.value;
    const left = limit === undefined ? {} : { limit: limit - this.#rowsPlanned };
    // later files give the columns of the first, wherever they have them
    const columns = this.#first === undefined ? {} : { columns: this.#first.plan.columns.map((column) => column.name) };
    const request = { ...this.#options.request, ...columns, ...left, policy: this.#options.policy() };
    const plan = this.#plan(metadata, request, file);
    const fields = inOrder(buildFields(metadata.root, plan.columns), plan.columns);
    const shapes = nestedShapes(fields, plan.columns, file.path);
    const planned = { ...next.value, plan, fields, shapes };
    if (this.#first === undefined) this.#first = planned;
    else checkSame(this.#first, planned);
    this.#current = planned;
    this.#nextGroup = 0;
    this.#rowsPlanned += plan.rowGroups.reduce((sum, group) => sum + group.numRows, 0);
    return true;
  }

  #plan(metadata: FileMetadata, request: ScanRequest, file: FileVersion): ScanPlan {
    try {
      return planScan(metadata, request);
    } catch (error) {
      if (!(error instanceof FetchError)) throw error;
      const [missing] = /^no column "(?:[^"\\]|\\.)*"/.exec(error.reason) ?? [];
      if (this.#first === undefined || missing === undefined) throw error.located(file.path);
      const reason = `${missing} (${this.#first.file.path}, the first file, has it)`;
      throw new FetchError('COLUMN', `${file.path}: ${reason}`, { cause: error });
    }
  }

  async next(scan: ScanContext): Promise<RowGroupRun | undefined> {
    for (;;) {
      const group = this.#current?.plan.rowGroups[this.#nextGroup];
      if (group !== undefined) {
        this.#nextGroup++;
        this.#homes.set(group, this.#current!);
        return this.#run(group, scan, 0);
      }
      if (!(await this.#nextFile())) return undefined;
    }
  }

  again(run: RowGroupRun, scan: ScanContext): RowGroupRun {
    return this.#run(run.group, scan, run.rowsTaken);
  }

  #run(group: PlannedRowGroup, scan: ScanContext, skipRows: number): RowGroupRun {
    const { transport, file, metadata, plan, shapes } = this.#homes.get(group)!;
    const wrongBitPacking = packsLevelsWrong(metadata.createdBy);
    const { pool, streams } = scan.engine;
    const columns = group.chunks.map((planned, k) => {
      const column = plan.columns[k]!;
      const chunk = metadata.rowGroups[group.ordinal]!.columns[column.index]!;
      const place = { file: file.path, column: column.name, rowGroup: group.ordinal, offset: chunk.bytes.start };
      if (chunk.encrypted) {
        const { offset: _, ...where } = place;
        throw new DecodeError('ENCRYPTED', `${chunk.broken}: leave it out, other columns may be readable`, where);
      }
      if (planned.broken !== undefined) throw new DecodeError('METADATA', planned.broken, place);
      if (chunk.numValues > 0 && chunk.bytes.end === chunk.bytes.start) {
        throw new DecodeError('METADATA', `the column chunk has ${chunk.numValues} values and no bytes`, place);
      }
      const nested = shapes.get(column.index);
      const spec: ChunkSpec = {
        columnName: column.name,
        physical: column.type as Physical,
        typeLength: column.typeLength,
        maxDefinitionLevel: column.maxDefinitionLevel,
        codec: chunk.codec as Codec,
        numValues: chunk.numValues,
        byteLength: chunk.bytes.end - chunk.bytes.start,
        fileOffset: chunk.bytes.start,
        uncompressedBytes: chunk.totalUncompressedSize,
        utf8: isText(column),
        bytesOutput: this.#options.dictionary && mayBeDictionary(column) ? 'dictionary' : 'values',
        windowRows: plan.batchRows,
        wrongBitPacking,
        ...(nested === undefined ? {} : { nested: { ...nested, rowsHint: group.numRows } }),
      };
      const events = {
        changed: scan.changed,
        failed: (error: Error): void => run.columnFailed(columns[k]!, error),
      };
      return new ColumnRun(pool, streams, column, spec, events);
    });
    const onFetch = (bytes: number, milliseconds: number): void => {
      this.#options.gap.observe(bytes, milliseconds);
      scan.onFetch(bytes, milliseconds);
    };
    const context = { pool, transport, file, changed: scan.changed, onFetch };
    const run: RowGroupRun = new RowGroupRun(context, group, columns, skipRows);
    return run;
  }
}

/** Arrow's types of the others are not dictionaries: their values are expanded. The same choice as in arrow-type.ts. */
function mayBeDictionary({ path, maxRepetitionLevel, logicalType }: LeafColumn): boolean {
  return path.length === 1 && maxRepetitionLevel === 0 && logicalType?.kind !== 'DECIMAL';
}

/** Fields in the order in which the columns name their first leaves. */
function inOrder(fields: readonly Field[], columns: readonly LeafColumn[]): Field[] {
  const position = new Map(columns.map((column, k) => [column.index, k]));
  const first = (field: Field): number => Math.min(...field.leaves.map((leaf) => position.get(leaf.index)!));
  return [...fields].sort((a, b) => first(a) - first(b));
}

/** What the levels of a nested leaf mean; undefined for one that decodes as a flat column does. */
export function nestedShape(fields: readonly Field[], column: LeafColumn, file: string): NestedShape | undefined {
  return nestedShapes(fields, [column], file).get(column.index);
}

/** The same for many leaves, by their indexes. */
function nestedShapes(
  fields: readonly Field[],
  columns: readonly LeafColumn[],
  file: string,
): Map<number, NestedShape | undefined> {
  const paths = pathsOf(fields);
  return new Map(columns.map((column) => [column.index, shapeOf(paths.get(column.index)!, column, file)]));
}

function shapeOf({ above, slot }: LeafPath, column: LeafColumn, file: string): NestedShape | undefined {
  const top = Math.max(column.maxDefinitionLevel, column.maxRepetitionLevel);
  if (top > LEVEL_MAX) {
    throw new DecodeError('LIMIT', `levels up to ${top}`, {
      file,
      column: column.name,
      expected: `at most ${LEVEL_MAX}`,
    });
  }
  // groups that can't be null leave no trace in the levels
  const plain = above.every((node) => node.kind === 'struct' && node.valid === node.slot);
  if (plain && column.maxDefinitionLevel <= 1) return undefined;
  return { maxRepetitionLevel: column.maxRepetitionLevel, nodes: above, leafSlot: slot, rowsHint: 1 };
}

function checkSame(first: PlannedFile, other: PlannedFile): void {
  for (const [k, expected] of first.plan.columns.entries()) {
    const column = other.plan.columns[k];
    const place = { file: other.file.path, column: expected.name };
    if (column === undefined || column.name !== expected.name) {
      throw new DecodeError('SCHEMA', `the file does not have this column in its place`, {
        ...place,
        expected: `the columns of ${first.file.path}`,
      });
    }
    if (typeText(column) !== typeText(expected)) {
      throw new DecodeError('SCHEMA', `the column is ${typeText(column)}`, {
        ...place,
        expected: `${typeText(expected)}, as in ${first.file.path}`,
      });
    }
  }
}

function typeText(column: LeafColumn): string {
  const { logicalType, maxRepetitionLevel: lists } = column;
  const logical = logicalType === undefined ? '' : ` ${shortTypeText(logicalType)}`;
  return `${physicalName(column)}${logical}${lists === 0 ? '' : ` in ${formatCounted(lists, 'list')}`}`;
}
