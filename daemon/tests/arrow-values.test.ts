/** Values that change their layout on the way to Arrow: decimals from every physical type, INT96, narrow integers. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { DataType, Decimal } from 'apache-arrow';
import { DecodeError, Physical } from '../../decode/index.ts';
import { seededRandom } from '../../decode/tests/random.ts';
import { type ColumnValue, type WriterColumn, writeFile } from '../../decode/tests/writer/index.ts';
import { ScanEngine } from '../scan/engine.ts';
import { Lake } from './lake.ts';
import { type Scanned, scanBytes, valuesAt } from './table-file.ts';

const ROWS = 9001; // more than two blocks, and no multiple of one

/** Big-endian two's complement of `width` bytes. */
function bigEndian(value: bigint, width: number): Uint8Array {
  const bytes = new Uint8Array(width);
  for (let k = width - 1, left = BigInt.asUintN(8 * width, value); k >= 0; k--, left >>= 8n)
    bytes[k] = Number(left & 255n);
  return bytes;
}

/** Bytes as short as the value allows. */
function shortest(value: bigint): Uint8Array {
  let width = 1;
  while (BigInt.asIntN(8 * width, value) !== value) width++;
  return bigEndian(value, width);
}

/** Decimals of a scan's column as integers. */
function decimalsAt(scanned: Scanned, place: number): (bigint | null)[] {
  return scanned.batches.flatMap((batch) => {
    const [data] = batch.getChildAt(place)!.data;
    const words = (data!.type as Decimal).bitWidth / 32;
    const values = data!.values as Uint32Array;
    return Array.from({ length: data!.length }, (_, row) => {
      if (!data!.getValid(row)) return null;
      let value = 0n;
      for (let k = words - 1; k >= 0; k--) value = (value << 32n) | BigInt(values[row * words + k]!);
      return BigInt.asIntN(32 * words, value);
    });
  });
}

describe('values of another layout in Arrow', () => {
  let lake: Lake;
  let engine: ScanEngine;
  before(async () => {
    lake = await Lake.create();
    engine = new ScanEngine({ memoryBytes: 64 << 20, decoders: 1 });
  });
  after(async () => {
    await engine.close();
    await lake[Symbol.asyncDispose]();
  });
  const random = seededRandom();

  const scan = (column: WriterColumn, values: ColumnValue[]): Promise<Scanned> =>
    scanBytes(engine, lake.folder, writeFile({ rowGroups: [[{ column, values, pages: [{}] }]] }).bytes, {
      batchRows: 5000,
    });

  /** An integer of up to `bits` bits, edges first. */
  function integers(bits: number, rows = ROWS): bigint[] {
    const limit = 1n << BigInt(bits - 1);
    const edges = [0n, 1n, -1n, limit - 1n, -limit, limit >> 1n, -(limit >> 1n)];
    return Array.from({ length: rows }, (_, row) => {
      if (row < edges.length) return BigInt.asIntN(bits, edges[row]!);
      let value = 0n;
      for (let k = 0; k < bits; k += 16) value = (value << 16n) | BigInt(random.below(65536));
      return BigInt.asIntN(1 + random.below(bits), value);
    });
  }
  const withNulls = <T>(values: T[]): (T | null)[] => values.map((value, row) => (row % 7 === 3 ? null : value));

  const decimal = (precision: number): Record<string, unknown> => ({ DECIMAL: { precision, scale: 2 } });

  for (const precision of [5, 38, 50]) {
    test(`decimals of ${precision} digits on every physical type`, async () => {
      const check = async (column: WriterColumn, values: bigint[], stored: (value: bigint) => ColumnValue) => {
        const logicalType = decimal(precision);
        const required = await scan(
          { ...column, logicalType },
          values.map((value) => stored(value)),
        );
        assert.deepEqual(decimalsAt(required, 0), values, column.name);
        const expected = withNulls(values);
        const optional = await scan(
          { ...column, logicalType, optional: true },
          expected.map((value) => (value === null ? null : stored(value))),
        );
        assert.deepEqual(decimalsAt(optional, 0), expected, `${column.name}, optional`);
      };
      const bits = precision > 38 ? 256 : 128;
      await check({ name: 'int32', physical: Physical.INT32 }, integers(32), Number);
      await check({ name: 'int64', physical: Physical.INT64 }, integers(64), (value) => value);
      for (const typeLength of [1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 15, 16, 17, 20, 31, 32, 33, 40]) {
        const column = { name: `flba${typeLength}`, physical: Physical.FIXED_LEN_BYTE_ARRAY, typeLength };
        const values = integers(Math.min(8 * typeLength, bits), 300);
        await check(column, values, (value) => bigEndian(value, typeLength));
      }
      await check({ name: 'bytes', physical: Physical.BYTE_ARRAY }, integers(bits), shortest);
      // the same with more bytes than needed
      const padded = { name: 'padded', physical: Physical.BYTE_ARRAY };
      await check(padded, integers(bits, 300), (value) => bigEndian(value, 36));
    });
  }

  test('a decimal without bytes is 0, and one that needs more bits than its type has is refused', async () => {
    const column = { name: 'a', physical: Physical.BYTE_ARRAY, logicalType: decimal(20) };
    assert.deepEqual(decimalsAt(await scan(column, [new Uint8Array(0), Uint8Array.of(255)]), 0), [0n, -1n]);
    for (const value of [1n << 127n, -(1n << 127n) - 1n, 1n << 200n]) {
      await assert.rejects(scan(column, [bigEndian(value, 30)]), (error) => {
        assert.ok(error instanceof DecodeError);
        assert.equal(error.code, 'VALUE');
        assert.match(error.message, /does not fit in the 128 bits/);
        return true;
      });
    }
  });

  const NANOS_PER_DAY = 86_400_000_000_000n;
  const JULIAN_EPOCH_DAY = 2_440_588n;
  function int96(day: bigint, nanos: bigint): Uint8Array {
    const bytes = new Uint8Array(12);
    const view = new DataView(bytes.buffer);
    view.setBigInt64(0, nanos, true);
    view.setInt32(8, Number(day), true);
    return bytes;
  }

  test('INT96 timestamps, before and after 1970, with nulls', async () => {
    const nanos = [0n, 1n, -1n, 2n ** 63n - 1n, -(2n ** 63n), ...integers(63)];
    const stored = (value: bigint): Uint8Array => {
      let day = value / NANOS_PER_DAY;
      if (day * NANOS_PER_DAY > value) day--;
      return int96(day + JULIAN_EPOCH_DAY, value - day * NANOS_PER_DAY);
    };
    const valuesOf = (scanned: Scanned): (bigint | null)[] =>
      scanned.batches.flatMap((batch) => {
        const [data] = batch.getChildAt(0)!.data;
        const values = data!.values as BigInt64Array;
        return Array.from({ length: data!.length }, (_, row) => (data!.getValid(row) ? values[row]! : null));
      });
    const column = { name: 'a', physical: Physical.INT96 };
    assert.deepEqual(valuesOf(await scan(column, nanos.map(stored))), nanos);
    const expected = withNulls(nanos);
    const scanned = await scan(
      { ...column, optional: true },
      expected.map((value) => (value === null ? null : stored(value))),
    );
    assert.deepEqual(valuesOf(scanned), expected);
  });

  test('an INT96 outside of nanoseconds is refused with what to do', async () => {
    const column = { name: 'when', physical: Physical.INT96, optional: true };
    const good = int96(JULIAN_EPOCH_DAY, 5n);
    const bad = int96(5_373_484n, 0n); // 31 December 9999
    await assert.rejects(scan(column, [null, good, null, bad, good]), (error) => {
      assert.ok(error instanceof DecodeError);
      assert.equal(error.code, 'VALUE');
      assert.match(error.message, /column "when".*Julian day 5373484 .*leave the column out.*years 1677 to 2262/);
      return true;
    });
  });

  test('narrow integers keep their bits', async () => {
    for (const [bitWidth, isSigned] of [
      [8, true],
      [8, false],
      [16, true],
      [16, false],
    ] as const) {
      const values = integers(bitWidth + (isSigned ? 0 : 1)).map((value) => Number(isSigned ? value : value & 0xffffn));
      const expected = values.map((value) => {
        const bits = BigInt(value);
        return Number(isSigned ? BigInt.asIntN(bitWidth, bits) : BigInt.asUintN(bitWidth, bits));
      });
      const column = { name: 'a', physical: Physical.INT32, logicalType: { INTEGER: { bitWidth, isSigned } } };
      assert.deepEqual(valuesAt(await scan(column, values), 0), expected);
    }
  });

  test('a column of nothing but nulls, and one that says so and lies', async () => {
    const column = { name: 'a', physical: Physical.INT32, logicalType: { UNKNOWN: {} }, optional: true };
    const scanned = await scan(column, new Array<null>(20).fill(null));
    assert.equal(String(scanned.schema.fields[0]!.type as DataType), 'Null');
    assert.deepEqual(valuesAt(scanned, 0), new Array(20).fill(null));
    await assert.rejects(scan(column, [null, 1]), (error) => error instanceof DecodeError && error.code === 'VALUE');
  });
});
