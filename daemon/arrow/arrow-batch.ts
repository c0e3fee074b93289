/**
 * Batches of the pool as Arrow record batches: owned copies, or views of the pool that last until the batch is
 * released. Physical layouts are Arrow's already; what is left is cutting rows out of segments and the conversions
 * of `arrow-type.ts`.
 */
import {
  type Data,
  type DataType,
  Dictionary,
  makeData,
  makeVector,
  RecordBatch,
  Schema,
  Struct,
  type Vector,
} from 'apache-arrow';
import type { DictionaryValues, Field, Pool } from '../../decode/index.ts';
import type { Batch } from '../scan/segments.ts';
import { batchRanges, elementsOf, rangeOf, type SlotRange, type SlotRanges, validityOf } from '../scan/slots.ts';
import type { ArrowNode } from './arrow-type.ts';
import { checkAllNull, convertValues } from './convert.ts';

export interface BuildOptions {
  /** Views of the pool instead of copies, where the layout allows; valid until the batch is released. */
  readonly zeroCopy: boolean;
}

export class ArrowBatchBuilder {
  readonly schema: Schema;
  readonly #pool: Pool;
  readonly #nodes: readonly ArrowNode[];
  readonly #options: BuildOptions;
  /** The last dictionary of each column, kept while batches name it so that it is copied once. */
  readonly #dictionaries = new Map<number, { values: DictionaryValues; vector: Vector }>();

  constructor(pool: Pool, nodes: readonly ArrowNode[], metadata: Map<string, string>, options: BuildOptions) {
    this.#pool = pool;
    this.#nodes = nodes;
    this.#options = options;
    this.schema = new Schema(
      nodes.map((node) => node.field),
      metadata,
    );
  }

  /** The fields that it makes columns of. */
  get fields(): readonly Field[] {
    return this.#nodes.map((node) => node.source);
  }

  build(batch: Batch): RecordBatch {
    const ranges = batchRanges(batch);
    const children = this.#nodes.map((node) => this.#data(node, ranges));
    const type = new Struct(this.schema.fields);
    const data = makeData({ type, length: batch.rows, nullCount: 0, children });
    return new RecordBatch(this.schema, data);
  }

  #data(node: ArrowNode, ranges: SlotRanges): Data {
    const { source } = node;
    if (source.kind === 'leaf') return this.#leaf(node, rangeOf(source, ranges));
    const range = rangeOf(source, ranges);
    const common = this.#common(range, validityOf(source, ranges));
    const { type } = node.field;
    if (source.kind === 'struct') {
      return makeData({ type, ...common, children: node.children.map((child) => this.#data(child, ranges)) } as never);
    }
    const elements = elementsOf(this.#pool, source, ranges);
    const children = node.children.map((child) => this.#data(child, elements.ranges));
    const child =
      source.kind === 'map' && source.value !== undefined
        ? this.#entries(node, elements.offsets, children)
        : children[0];
    return makeData({ type, ...common, valueOffsets: elements.offsets, child } as never);
  }

  /** The pairs of a map, as Arrow has them: a struct of keys and values. */
  #entries(node: ArrowNode, offsets: Int32Array, children: readonly Data[]): Data {
    const { type } = node.field.type.children[0]!;
    return makeData({ type, length: offsets.at(-1)!, nullCount: 0, children } as never);
  }

  #common(range: SlotRange, validity: number): { length: number; nullCount: number; nullBitmap?: Uint8Array } {
    const { count } = range;
    const nullBitmap = this.#validity(range, validity);
    const nullCount = nullBitmap === undefined ? 0 : count - countOnes(nullBitmap, count);
    return { length: count, nullCount, ...(nullBitmap === undefined ? {} : { nullBitmap }) };
  }

  #leaf(node: ArrowNode, range: SlotRange): Data {
    const common = this.#common(range, range.segment.validity);
    const { type } = node.field;
    if (type instanceof Dictionary) return this.#dictionaryData(range, node, type, common);
    if (node.conversion === 'null') {
      checkAllNull(common, node);
      return makeData({ type, length: common.length } as never);
    }
    if (node.conversion !== 'none') {
      const data = convertValues(this.#pool, range, node);
      return makeData({ type, ...common, data } as never);
    }
    if (range.segment.layout === 'bytes') {
      const { valueOffsets, data } = this.#byteArrays(range);
      return makeData({ type, ...common, valueOffsets, data } as never);
    }
    return makeData({ type, ...common, data: this.#fixed(range, type) } as never);
  }

  /** Pool bytes [start, end): a view when it may be one, else a copy of its own. */
  #bytes(start: number, end: number): Uint8Array {
    const { u8 } = this.#pool;
    return this.#options.zeroCopy ? u8.subarray(start, end) : u8.slice(start, end);
  }

  #validity({ start, count: rows }: SlotRange, validity: number): Uint8Array | undefined {
    if (validity === 0) return undefined;
    if (start % 8 === 0) {
      const from = validity + start / 8;
      return this.#bytes(from, from + Math.ceil(rows / 8));
    }
    return shiftedBits(this.#pool.u8, validity, start, rows);
  }

  #fixed({ segment, start, count: rows }: SlotRange, type: DataType): unknown {
    if (segment.layout === 'bits') {
      if (start % 8 !== 0) return shiftedBits(this.#pool.u8, segment.values, start, rows);
      const from = segment.values + start / 8;
      return this.#bytes(from, from + Math.ceil(rows / 8));
    }
    const from = segment.values + start * segment.width;
    const bytes = this.#bytes(from, from + rows * segment.width);
    const Values = type.ArrayType as unknown as {
      new (buffer: ArrayBufferLike, byteOffset: number, length: number): unknown;
      BYTES_PER_ELEMENT: number;
    };
    return new Values(bytes.buffer, bytes.byteOffset, bytes.byteLength / Values.BYTES_PER_ELEMENT);
  }

  #byteArrays({ segment, start, count: rows }: SlotRange): { valueOffsets: Int32Array; data: Uint8Array } {
    const { i32 } = this.#pool;
    const first = (segment.values >>> 2) + start;
    const begin = i32[first]!;
    const end = i32[first + rows]!;
    const data = this.#bytes(segment.data + begin, segment.data + end);
    if (begin === 0) {
      const offsets = this.#options.zeroCopy
        ? i32.subarray(first, first + rows + 1)
        : i32.slice(first, first + rows + 1);
      return { valueOffsets: offsets, data };
    }
    const valueOffsets = i32.slice(first, first + rows + 1);
    for (let k = 0; k <= rows; k++) valueOffsets[k]! -= begin;
    return { valueOffsets, data };
  }

  #dictionaryData(range: SlotRange, node: ArrowNode, type: Dictionary, common: object): Data {
    const { segment, start, count: rows } = range;
    if (segment.layout === 'bytes') {
      // pages that are not dictionary-encoded: each value is its own entry, so that the scan keeps one schema
      const indices = Int32Array.from({ length: rows }, (_, k) => k);
      const entries = makeData({ type: type.dictionary, length: rows, ...this.#byteArrays(range) } as never);
      return makeData({ type, ...common, data: indices, dictionary: makeVector(entries as Data) } as never);
    }
    const from = segment.values + start * 4;
    const bytes = this.#bytes(from, from + rows * 4);
    const data = new Int32Array(bytes.buffer, bytes.byteOffset, rows);
    const dictionary = this.#dictionaryVector(node, type, segment.dictionary!);
    return makeData({ type, ...common, data, dictionary } as never);
  }

  #dictionaryVector(node: ArrowNode, type: Dictionary, values: DictionaryValues): Vector {
    const known = this.#dictionaries.get(leafOf(node));
    if (known?.values === values && !this.#options.zeroCopy) return known.vector;
    const { i32 } = this.#pool;
    const first = values.offsets >>> 2;
    const valueOffsets = i32.slice(first, first + values.count + 1);
    const data = this.#bytes(values.data, values.data + values.dataBytes);
    const entries = makeData({ type: type.dictionary, length: values.count, valueOffsets, data } as never);
    const vector = makeVector(entries as Data);
    this.#dictionaries.set(leafOf(node), { values, vector });
    return vector;
  }
}

const leafOf = (node: ArrowNode): number => node.source.leaves[0]!.index;

/** `count` bits from bit `start` of the bitmap at `address`, moved to bit 0. */
function shiftedBits(u8: Uint8Array, address: number, start: number, count: number): Uint8Array {
  const bits = new Uint8Array(Math.ceil(count / 8));
  const from = address + (start >>> 3);
  const shift = start & 7;
  for (let k = 0; k < bits.length; k++) {
    bits[k] = (u8[from + k]! >>> shift) | (shift === 0 ? 0 : u8[from + k + 1]! << (8 - shift));
  }
  return bits;
}

function countOnes(bits: Uint8Array, count: number): number {
  let ones = 0;
  const whole = count >>> 3;
  for (let k = 0; k < whole; k++) ones += ONES[bits[k]!]!;
  for (let k = whole * 8; k < count; k++) ones += (bits[k >>> 3]! >>> (k & 7)) & 1;
  return ones;
}

const ONES = Uint8Array.from({ length: 256 }, (_, byte) => {
  let ones = 0;
  for (let bits = byte; bits !== 0; bits &= bits - 1) ones++;
  return ones;
});
