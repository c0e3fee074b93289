/** Parquet files by parquet-wasm, which is arrow-rs: both page versions, every encoding, every codec, LZ4 too. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Field, makeData, RecordBatch, Schema, Struct, Table, tableToIPC } from 'apache-arrow';
import {
  Compression,
  Encoding,
  Table as WasmTable,
  WriterPropertiesBuilder,
  WriterVersion,
  writeParquet,
} from 'parquet-wasm';
import type { SeededRandom } from '../../../decode/tests/random.ts';
import { arrowData, arrowType, isArrowLeaf } from './arrow-data.ts';
import { type Column, KINDS, type Kind, type LeafName, leavesOf, makeColumn } from './kinds.ts';
import { pairwise } from './pairwise.ts';
import { drawingOf, NULLS, type WrittenFile } from './written.ts';

const ROWS = 300;

const INTEGERS: readonly LeafName[] = ['int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64'];

export async function* writeParquetWasmFiles(folder: string, random: SeededRandom): AsyncGenerator<WrittenFile> {
  const choices = pairwise(random, {
    kinds: ['flat', 'nested'],
    nulls: NULLS,
    distinct: [1, 12, 300],
    encoding: ['dictionary', 'dictionary overflow', 'PLAIN', 'DELTA', 'DELTA_BYTE_ARRAY', 'BYTE_STREAM_SPLIT'],
    codec: ['UNCOMPRESSED', 'SNAPPY', 'GZIP', 'BROTLI', 'ZSTD', 'LZ4', 'LZ4_RAW'],
    version: ['V1', 'V2'],
    pageSize: [1, 300, 1 << 20],
    rowGroupSize: [61, ROWS],
  });
  const known = KINDS.filter((kind) => leavesOf(kind).every((leaf) => isArrowLeaf(leaf.name)));
  for (const [k, options] of choices.entries()) {
    const kinds = known.filter((kind) => (kind.kind === 'leaf') === (options.kinds === 'flat'));
    const columns = kinds.map((kind) => makeColumn(random, kind, ROWS, drawingOf(options.nulls, options.distinct)));
    const file = `parquet-wasm-${k}.parquet`;
    let builder = new WriterPropertiesBuilder()
      .setCompression(Compression[options.codec])
      .setWriterVersion(WriterVersion[options.version])
      .setDataPageSizeLimit(options.pageSize)
      .setWriteBatchSize(options.pageSize < 1000 ? 16 : 1024)
      .setMaxRowGroupSize(options.rowGroupSize)
      .setDictionaryEnabled(options.encoding.startsWith('dictionary'))
      .setDictionaryPageSizeLimit(options.encoding === 'dictionary overflow' ? 64 : 1 << 20);
    for (const kind of kinds) {
      for (const [path, name] of pathsOf(kind.name, kind)) {
        const encoding = encodingOf(name, options.encoding);
        if (encoding !== undefined) builder = builder.setColumnEncoding(path, encoding);
      }
    }
    const table = WasmTable.fromIPCStream(tableToIPC(tableOf(columns, options.nulls !== 'required'), 'stream'));
    writeFileSync(join(folder, file), writeParquet(table, builder.build()));
    yield { file, options, rows: ROWS, columns: columns.map(({ expected }) => expected) };
  }
}

function tableOf(columns: readonly Column[], nullable: boolean): Table {
  const fields = columns.map(({ kind }) => new Field(kind.name, arrowType(kind, nullable), nullable));
  const children = columns.map(({ kind, values }) => arrowData(kind, nullable, values));
  const data = makeData({ type: new Struct(fields), length: ROWS, nullCount: 0, children });
  return new Table([new RecordBatch(new Schema(fields), data as never)]);
}

/** Paths of the leaves as this writer names them. */
function pathsOf(path: string, kind: Kind): (readonly [path: string, name: LeafName])[] {
  switch (kind.kind) {
    case 'leaf':
      return [[path, kind.name]];
    case 'list':
      return pathsOf(`${path}.list.element`, kind.element);
    case 'struct':
      return Object.entries(kind.fields).flatMap(([name, field]) => pathsOf(`${path}.${name}`, field));
    case 'map':
      return [[`${path}.key_value.key`, kind.key.name], ...pathsOf(`${path}.key_value.value`, kind.value)];
  }
}

function encodingOf(name: LeafName, wanted: string): Encoding | undefined {
  const isText = name === 'string' || name === 'binary';
  const isFixed = name === 'fixed_5' || name === 'half' || name === 'decimal_38_10' || name === 'decimal_76_5';
  const isInteger = INTEGERS.includes(name) || /^(date|time|decimal_(4|9|18))/.test(name);
  switch (wanted) {
    case 'PLAIN':
      return Encoding.PLAIN;
    case 'BYTE_STREAM_SPLIT':
      return isText || name === 'bool' ? undefined : Encoding.BYTE_STREAM_SPLIT;
    case 'DELTA':
      if (isText) return Encoding.DELTA_LENGTH_BYTE_ARRAY;
      return isInteger ? Encoding.DELTA_BINARY_PACKED : undefined;
    case 'DELTA_BYTE_ARRAY':
      if (isText || isFixed) return Encoding.DELTA_BYTE_ARRAY;
      return name === 'bool' ? Encoding.RLE : undefined;
    default:
      return undefined;
  }
}
