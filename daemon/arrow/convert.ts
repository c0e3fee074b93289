/**
 * Stored values to Arrow values where the layouts differ: narrow integers, decimals, INT96 timestamps. A value that
 * does not fit its Arrow type is an error, never something else.
 *
 * Kernels do what is the same for every value: 1 to 3 ns a value where loops take 2 (int64 decimals), 25 (byte-array
 * ones) and 190 (INT96). They work in a small memory of their own, a block of values at a time, so that a full pool is
 * no obstacle and nulls can be given a value that converts.
 */
import type { Decimal } from 'apache-arrow';
import { DecodeError, type Kernels, loadKernels, type Pool } from '../../decode/index.ts';
import type { SlotRange } from '../scan/slots.ts';
import type { ArrowNode } from './arrow-type.ts';

type Values = Int8Array | Int16Array | Uint8Array | Uint16Array | Uint32Array | BigInt64Array;

/** The slice's values in the column's Arrow type. Throws VALUE. */
export function convertValues(pool: Pool, slice: SlotRange, column: ArrowNode): Values {
  const bytes = (column.field.type as Decimal).bitWidth / 8;
  switch (column.conversion) {
    case 'narrow8':
    case 'narrow16':
      return narrow(pool, slice, column);
    case 'decimal-int':
      return widenDecimal(pool, slice, bytes);
    case 'decimal-bytes':
      return decimalFromBytes(pool, slice, column, bytes);
    case 'int96':
      return timestampsFromInt96(pool, slice, column);
    default:
      throw new Error(`no conversion ${column.conversion}`);
  }
}

/** Nothing is left of a column of nulls; a value in it would be lost. Throws VALUE. */
export function checkAllNull({ nullCount, length }: { nullCount: number; length: number }, column: ArrowNode): void {
  if (nullCount === length) return;
  throw new DecodeError('VALUE', 'a value in a column that is annotated as nothing but nulls', {
    column: column.source.leaves[0]!.name,
  });
}

/** The type's own bits are kept, as writers put them: unsigned types come as the low bits of the stored integer. */
function narrow(pool: Pool, slice: SlotRange, column: ArrowNode): Values {
  const { segment, start, count: rows } = slice;
  const first = (segment.values >>> 2) + start;
  const stored = pool.i32.subarray(first, first + rows);
  const TargetArray = column.field.type.ArrayType as unknown as { from(values: Int32Array): Values };
  return TargetArray.from(stored as Int32Array);
}

const PAGE_BYTES = 65536;
/** Values of a block: 64 KiB of 16-byte decimals, in L2. */
const BLOCK_VALUES = 4096;
const DECIMAL128_BYTES = 16;

interface Workshop {
  readonly kernels: Kernels;
  readonly u8: Uint8Array;
  readonly view: DataView;
  /** Address of the block. */
  readonly block: number;
}

let shop: Workshop | undefined;

/** Kernels over three pages: their tables, and room for a block. */
function workshop(): Workshop {
  if (shop === undefined) {
    const memory = new WebAssembly.Memory({ initial: 3, maximum: 3, shared: true });
    const u8 = new Uint8Array(memory.buffer);
    shop = { kernels: loadKernels(memory), u8, view: new DataView(memory.buffer), block: PAGE_BYTES };
  }
  return shop;
}

/** Runs a kernel that works in place over all values: `width` bytes each before, `outWidth` after. */
function inBlocks(
  pool: Pool,
  { segment, start, count }: SlotRange,
  outWidth: number,
  run: (shop: Workshop, n: number, done: number) => void,
): Uint8Array {
  const made = workshop();
  const { width } = segment;
  const out = new Uint8Array(count * outWidth);
  for (let done = 0; done < count; done += BLOCK_VALUES) {
    const n = Math.min(BLOCK_VALUES, count - done);
    const from = segment.values + (start + done) * width;
    made.u8.set(pool.u8.subarray(from, from + n * width), made.block);
    run(made, n, done);
    out.set(made.u8.subarray(made.block, made.block + n * outWidth), done * outWidth);
  }
  return out;
}

function widenDecimal(pool: Pool, slice: SlotRange, bytes: number): Uint32Array {
  const decimals = inBlocks(pool, slice, DECIMAL128_BYTES, ({ kernels, block }, n) => {
    if (slice.segment.width === 4) kernels.widenDecimal4(block, n, block);
    else kernels.widenDecimal8(block, n, block);
  });
  return asDecimal(decimals, bytes);
}

/** 16-byte decimals as words of the width that the type has. */
function asDecimal(decimals: Uint8Array, bytes: number): Uint32Array {
  const words = new Uint32Array(decimals.buffer);
  if (bytes === DECIMAL128_BYTES) return words;
  const wide = new Uint32Array(words.length * 2);
  for (let from = 0, at = 0; from < words.length; from += 4, at += 8) {
    const sign = words[from + 3]! >> 31;
    for (let k = 0; k < 4; k++) {
      wide[at + k] = words[from + k]!;
      wide[at + 4 + k] = sign;
    }
  }
  return wide;
}

function decimalFromBytes(pool: Pool, slice: SlotRange, column: ArrowNode, size: number): Uint32Array {
  const { segment, start, count: rows } = slice;
  if (segment.layout === 'fixed' && segment.width <= DECIMAL128_BYTES) {
    const decimals = inBlocks(pool, slice, DECIMAL128_BYTES, ({ kernels, block }, n) => {
      kernels.reverseDecimal(block, n, segment.width, block);
    });
    return asDecimal(decimals, size);
  }
  const { u8, i32 } = pool;
  const out = new Uint8Array(rows * size);
  for (let k = 0; k < rows; k++) {
    const row = start + k;
    let from = segment.values + row * segment.width;
    let length = segment.width;
    if (segment.layout === 'bytes') {
      const at = (segment.values >>> 2) + row;
      from = segment.data + i32[at]!;
      length = i32[at + 1]! - i32[at]!;
    }
    if (length === 0) continue; // an empty decimal is 0
    const sign = u8[from]! >= 0x80 ? 0xff : 0;
    for (; length > size; from++, length--) {
      if (u8[from] !== sign) throw tooWide(column, size);
    }
    const target = k * size;
    for (let byte = 0; byte < length; byte++) out[target + byte] = u8[from + length - 1 - byte]!;
    if (length === size && (out[target + size - 1]! >= 0x80 ? 0xff : 0) !== sign) throw tooWide(column, size);
    if (sign !== 0) out.fill(0xff, target + length, target + size);
  }
  return new Uint32Array(out.buffer);
}

function tooWide(column: ArrowNode, bytes: number): DecodeError {
  return new DecodeError('VALUE', `a decimal does not fit in the ${bytes * 8} bits that its precision takes`, {
    column: column.source.leaves[0]!.name,
  });
}

/** Day number of 1970-01-01 in INT96's Julian calendar. */
const JULIAN_EPOCH_DAY = 2440588;
const NANOS_PER_DAY = 86_400_000_000_000n;
const INT96_BYTES = 12;

function timestampsFromInt96(pool: Pool, slice: SlotRange, column: ArrowNode): BigInt64Array {
  const { segment, start } = slice;
  const { validity } = segment;
  const out = inBlocks(pool, slice, 8, ({ kernels, view, block }, n, done) => {
    if (validity !== 0) {
      for (let k = 0; k < n; k++) {
        const row = start + done + k;
        const isNull = ((pool.u8[validity + (row >>> 3)]! >>> (row & 7)) & 1) === 0;
        // a null holds day 0, which no Arrow timestamp reaches
        if (isNull) view.setInt32(block + k * INT96_BYTES + 8, JULIAN_EPOCH_DAY, true);
      }
    }
    const before = segment.values + (start + done) * INT96_BYTES;
    if (kernels.int96ToNanos(block, n, block) !== 0) throw outsideNanos(pool, before, n, column);
  });
  return new BigInt64Array(out.buffer);
}

/** The error that names the first of `n` timestamps that does not fit. */
function outsideNanos(pool: Pool, at: number, n: number, column: ArrowNode): DecodeError {
  const view = new DataView(pool.u8.buffer, at, n * INT96_BYTES);
  let day = 0;
  for (let k = 0; k < n; k++) {
    day = view.getInt32(k * INT96_BYTES + 8, true);
    const value = BigInt(day - JULIAN_EPOCH_DAY) * NANOS_PER_DAY + view.getBigInt64(k * INT96_BYTES, true);
    // nulls hold zeros
    const isZero = day === 0 && view.getBigInt64(k * INT96_BYTES, true) === 0n;
    if (!isZero && BigInt.asIntN(64, value) !== value) break;
  }
  return new DecodeError(
    'VALUE',
    `an INT96 timestamp on Julian day ${day} is outside what Arrow's timestamps in nanoseconds hold: leave the ` +
      'column out, or have the scan written as text, which holds any year',
    { column: column.source.leaves[0]!.name, expected: 'years 1677 to 2262' },
  );
}
