/** Whole Parquet files, from chunks as `chunk.ts` writes them. */
import { Codec, Repetition } from '../../format/enums.ts';
import { FILE_META_DATA } from '../parquet-tables.ts';
import { type Tree, type Value, writeStruct } from '../thrift-twin.ts';
import { type ChunkPlan, type WrittenChunk, writeChunk } from './chunk.ts';
import { join, u32, type WriterColumn } from './value.ts';

export interface FilePlan {
  /** One list of chunks for each row group, all of the same columns in the same order. */
  readonly rowGroups: ReadonlyArray<readonly ChunkPlan[]>;
  /** Elements of the schema without its root; flat columns when absent. */
  readonly schema?: readonly Tree[];
  /** Bytes of nothing at the start of the file. */
  readonly lead?: Uint8Array;
  /** Leave `dictionary_page_offset` out and let `data_page_offset` point at the dictionary page, as old writers do. */
  readonly omitDictionaryOffset?: boolean;
  /** Changes the footer before it is written; field names as in parquet.thrift. */
  readonly footer?: (footer: Tree) => void;
}

export interface WrittenFile {
  readonly bytes: Uint8Array;
  /** By row group and column: the chunk and its offset in the file. */
  readonly chunks: ReadonlyArray<ReadonlyArray<WrittenChunk & { readonly offset: number }>>;
}

const MAGIC = Buffer.from('PAR1');

export function writeFile(plan: FilePlan): WrittenFile {
  const { lead = new Uint8Array(0) } = plan;
  const parts: Uint8Array[] = [MAGIC, lead];
  let at = MAGIC.length + lead.length;
  const chunks: (WrittenChunk & { readonly offset: number })[][] = [];
  const groups: Tree[] = [];
  for (const group of plan.rowGroups) {
    const written: (WrittenChunk & { readonly offset: number })[] = [];
    const metadata: Tree[] = [];
    for (const chunkPlan of group) {
      const chunk = writeChunk(chunkPlan);
      written.push({ ...chunk, offset: at });
      metadata.push(chunkTree(chunkPlan, chunk, at, plan.omitDictionaryOffset === true));
      parts.push(chunk.bytes);
      at += chunk.bytes.length;
    }
    chunks.push(written);
    groups.push({
      columns: metadata,
      total_byte_size: BigInt(written.reduce((sum, chunk) => sum + chunk.uncompressedBytes, 0)),
      num_rows: BigInt(group[0] === undefined ? 0 : rowsOf(group[0])),
    });
  }
  const columns = (plan.rowGroups[0] ?? []).map((chunk) => chunk.column);
  const tree: Tree = {
    version: 1,
    schema: plan.schema === undefined ? flatSchema(columns) : withRoot(plan.schema),
    num_rows: groups.reduce((sum, group) => sum + (group.num_rows as bigint), 0n),
    row_groups: groups,
    created_by: 'test writer',
  };
  plan.footer?.(tree);
  const footer = writeStruct(FILE_META_DATA, tree);
  parts.push(footer, u32(footer.length), MAGIC);
  return { bytes: join(parts), chunks };
}

const rowsOf = ({ values, nested }: ChunkPlan): number =>
  nested === undefined ? values.length : nested.repetition.reduce((rows, level) => rows + (level === 0 ? 1 : 0), 0);

function flatSchema(columns: readonly WriterColumn[]): Tree[] {
  return [{ name: 'schema', num_children: columns.length }, ...columns.map(elementTree)];
}

function withRoot(elements: readonly Tree[]): Tree[] {
  // the elements that are in no group of the list
  let topLevel = 0;
  for (let at = 0; at < elements.length; at += sizeOf(elements, at)) topLevel++;
  return [{ name: 'schema', num_children: topLevel }, ...elements];
}

/** Elements of the subtree that begins at `at`. */
function sizeOf(elements: readonly Tree[], at: number): number {
  let size = 1;
  for (let left = Number(elements[at]!.num_children ?? 0); left > 0; left--) size += sizeOf(elements, at + size);
  return size;
}

function elementTree(column: WriterColumn): Tree {
  const element: Tree = {
    name: column.name,
    type: column.physical,
    repetition_type: column.optional ? Repetition.OPTIONAL : Repetition.REQUIRED,
  };
  if (column.typeLength !== undefined) element.type_length = column.typeLength;
  if (column.converted !== undefined) element.converted_type = column.converted;
  if (column.logicalType !== undefined) element.logicalType = column.logicalType as Value;
  return element;
}

function chunkTree(plan: ChunkPlan, chunk: WrittenChunk, offset: number, omitDictionaryOffset: boolean): Tree {
  const data = chunk.firstDataPage?.start ?? 0;
  const dictionary = chunk.dictionaryPage;
  const first = dictionary !== undefined && dictionary.start < data ? dictionary.start : data;
  const meta: Tree = {
    type: plan.column.physical,
    encodings: [...chunk.encodings],
    path_in_schema: [...(plan.nested?.path ?? [plan.column.name])],
    codec: plan.codec ?? Codec.UNCOMPRESSED,
    num_values: BigInt(chunk.numValues),
    total_uncompressed_size: BigInt(chunk.uncompressedBytes),
    total_compressed_size: BigInt(chunk.bytes.length),
    data_page_offset: BigInt(offset + (omitDictionaryOffset ? first : data)),
  };
  if (dictionary !== undefined && !omitDictionaryOffset)
    meta.dictionary_page_offset = BigInt(offset + dictionary.start);
  return { file_offset: BigInt(offset), meta_data: meta };
}
