/**
 * Files made of pages that are given as bytes, for sizes that no list of values can have: the same page may be written a
 * thousand times, one run may stand for a billion values, and a chunk may lie anywhere in a sparse file.
 */
import { open } from 'node:fs/promises';
import { Codec, Encoding, Physical } from '../../decode/index.ts';
import { FILE_META_DATA, PAGE_HEADER } from '../../decode/tests/parquet-tables.ts';
import { type Tree, writeStruct } from '../../decode/tests/thrift-twin.ts';
import { compress, u32, type WriterColumn } from '../../decode/tests/writer/index.ts';

export interface RawPage {
  readonly values: number;
  readonly encoding?: number;
  /** The page's bytes before compression. */
  readonly plain: Uint8Array;
  readonly dictionary?: true;
}

export interface RawChunk {
  readonly column: WriterColumn;
  readonly codec?: number;
  readonly pages: ReadonlyArray<{ readonly page: RawPage; readonly times?: number }>;
}

/** Bytes of a page as it is in the file. */
export function pageBytes({ values, encoding = Encoding.PLAIN, plain, dictionary }: RawPage, codec: number): Buffer {
  const body = compress(codec, plain);
  const sizes = { uncompressed_page_size: plain.length, compressed_page_size: body.length };
  const header: Tree = dictionary
    ? { type: 2, ...sizes, dictionary_page_header: { num_values: values, encoding: Encoding.PLAIN } }
    : {
        type: 0,
        ...sizes,
        data_page_header: {
          num_values: values,
          encoding,
          definition_level_encoding: Encoding.RLE,
          repetition_level_encoding: Encoding.RLE,
        },
      };
  return Buffer.concat([writeStruct(PAGE_HEADER, header), body]);
}

/** Writes a file of one column and one row group of it per chunk; its first chunk lies at `start`, a hole before it. */
export async function writeRawFile(path: string, chunks: readonly RawChunk[], start = 4): Promise<{ rows: number }> {
  const file = await open(path, 'w');
  try {
    await file.write(Buffer.from('PAR1'), 0, 4, 0);
    let at = start;
    const groups: Tree[] = [];
    let rows = 0;
    for (const { column, codec = Codec.UNCOMPRESSED, pages } of chunks) {
      const chunkStart = at;
      let uncompressed = 0;
      let values = 0;
      let dictionary: number | undefined;
      let data: number | undefined;
      for (const { page, times = 1 } of pages) {
        const bytes = pageBytes(page, codec);
        if (page.dictionary) dictionary = at;
        else data ??= at;
        for (let k = 0; k < times; k++, at += bytes.length) await file.write(bytes, 0, bytes.length, at);
        uncompressed += times * page.plain.length;
        if (!page.dictionary) values += times * page.values;
      }
      const meta: Tree = {
        type: column.physical,
        encodings: [Encoding.PLAIN],
        path_in_schema: [column.name],
        codec,
        num_values: BigInt(values),
        total_uncompressed_size: BigInt(uncompressed),
        total_compressed_size: BigInt(at - chunkStart),
        data_page_offset: BigInt(data!),
        ...(dictionary === undefined ? {} : { dictionary_page_offset: BigInt(dictionary) }),
      };
      const sizes = { total_byte_size: BigInt(uncompressed), num_rows: BigInt(values) };
      groups.push({ columns: [{ file_offset: 0n, meta_data: meta }], ...sizes });
      rows += values;
    }
    const { column } = chunks[0]!;
    const element: Tree = { name: column.name, type: column.physical, repetition_type: column.optional ? 1 : 0 };
    if (column.converted !== undefined) element.converted_type = column.converted;
    const footer = writeStruct(FILE_META_DATA, {
      version: 1,
      schema: [{ name: 'schema', num_children: 1 }, element],
      num_rows: BigInt(rows),
      row_groups: groups,
    });
    await file.write(Buffer.concat([footer, u32(footer.length), Buffer.from('PAR1')]), 0, footer.length + 8, at);
    return { rows };
  } finally {
    await file.close();
  }
}

/** An RLE run of booleans or of levels up to 1: its length in front, as data pages of version 1 have it. */
export function bitRun(values: number, value: boolean): Uint8Array {
  const bytes: number[] = [];
  for (let head = 2 * values; ; head = Math.floor(head / 128)) {
    bytes.push(head >= 128 ? (head % 128) | 128 : head);
    if (head < 128) break;
  }
  return Buffer.concat([u32(bytes.length + 1), Buffer.from([...bytes, value ? 1 : 0])]);
}

export const INT64_BYTES = 8;
export const booleans = (name: string): WriterColumn => ({ name, physical: Physical.BOOLEAN });
