import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DecodeError } from '../errors.ts';
import { CompactReader, CUT, Wire } from '../format/compact.ts';
import { seededRandom } from './random.ts';
import type { Kind, Table, Tree, Value } from './thrift-twin.ts';
import { readStruct, writeStruct } from './thrift-twin.ts';

const INNER: Table = { 1: ['flag', 'bool'], 2: ['small', 'i8'], 3: ['text', 'string'] };
const TABLE: Table = {
  1: ['flag', 'bool'],
  2: ['small', 'i8'],
  3: ['short', 'i16'],
  4: ['int', 'i32'],
  5: ['long', 'i64'],
  6: ['real', 'double'],
  7: ['bytes', 'binary'],
  20: ['text', 'string'],
  21: ['inner', { struct: INNER }],
  300: ['ints', { list: 'i32' }],
  301: ['longs', { list: 'i64' }],
  302: ['texts', { list: 'string' }],
  303: ['inners', { list: { struct: INNER } }],
  304: ['nested', { list: { list: 'i32' } }],
};

/** The table-driven counterpart of the twin, over CompactReader: only for tests. */
function readTree(r: CompactReader, table: Table): Tree {
  const tree: Tree = {};
  for (let last = 0; ; ) {
    const wire = r.field(last);
    if (wire === Wire.STOP) return tree;
    last = r.id;
    const field = table[last];
    if (field === undefined) r.skip(wire);
    else tree[field[0]] = readValue(r, wire, field[1]);
  }
}

function readValue(r: CompactReader, wire: number, kind: Kind): Value {
  if (kind === 'bool') return r.bool(wire);
  if (kind === 'i8') return r.i8(wire);
  if (kind === 'i16') return r.i16(wire);
  if (kind === 'i32') return r.i32(wire);
  if (kind === 'i64') return r.i64(wire);
  if (kind === 'binary') return Uint8Array.from(r.binary(wire));
  if (kind === 'string') return r.string(wire);
  if (kind === 'double') {
    const at = r.pos;
    r.skip(wire);
    return r.pos - at;
  }
  if ('struct' in kind) return readTree(r, kind.struct);
  const element =
    kind.list === 'i32'
      ? Wire.I32
      : kind.list === 'i64'
        ? Wire.I64
        : kind.list === 'string'
          ? Wire.BINARY
          : typeof kind.list === 'object' && 'list' in kind.list
            ? Wire.LIST
            : Wire.STRUCT;
  const size = r.list(wire, element);
  const list: Value[] = [];
  for (let i = 0; i < size; i++) list.push(readValue(r, element, kind.list));
  return list;
}

test('integers of every length read as the twin wrote them', () => {
  const longs = [0n, 1n, -1n, 63n, -64n, 64n, 8191n, -8192n, 2n ** 27n, -(2n ** 27n), 2n ** 28n, -(2n ** 28n) - 1n];
  longs.push(2n ** 31n - 1n, -(2n ** 31n), 2n ** 31n, 2n ** 32n, 2n ** 34n, 2n ** 35n, 2n ** 41n, -(2n ** 48n));
  longs.push(2n ** 53n - 1n, -(2n ** 53n) + 1n);
  const bytes = writeStruct(TABLE, { longs, short: -32768, small: -128, int: -2147483648 });
  const tree = readTree(new CompactReader(bytes), TABLE);
  assert.deepEqual(tree, { longs: longs.map(Number), short: -32768, small: -128, int: -2147483648 });
});

test('integers beyond 2^53 are never safe', () => {
  for (const long of [2n ** 53n, 2n ** 53n + 1n, 2n ** 62n, 2n ** 63n - 1n, -(2n ** 63n), -(2n ** 53n)]) {
    const value = readTree(new CompactReader(writeStruct(TABLE, { long })), TABLE).long as number;
    assert.equal(Number.isSafeInteger(value), false, `${long}`);
    assert.equal(value, Number(long));
  }
});

test('random structs read as the twin reads them, and cut anywhere they ask for more', () => {
  const random = seededRandom();
  for (let round = 0; round < 200; round++) {
    const tree: Tree = {};
    const long = () =>
      BigInt.asIntN(Number(random.below(53)) + 1, BigInt(random.below(2 ** 31)) * BigInt(random.below(2 ** 22)));
    const inner = (): Tree => ({
      flag: random.below(2) === 0,
      small: random.below(256) - 128,
      text: 'x'.repeat(random.below(40)),
    });
    const maybe = (name: string, value: Value) => {
      if (random.below(3) > 0) tree[name] = value;
    };
    maybe('flag', random.below(2) === 0);
    maybe('small', random.below(256) - 128);
    maybe('short', random.below(65536) - 32768);
    maybe('int', random.below(2 ** 32) - 2 ** 31);
    maybe('long', long());
    maybe(
      'bytes',
      Uint8Array.from({ length: random.below(300) }, () => random.below(256)),
    );
    maybe('text', ['', 'ascii', 'ümläut', '\ufeffmark', '漢字'.repeat(20)][random.below(5)]!);
    maybe('inner', inner());
    maybe(
      'ints',
      Array.from({ length: random.below(40) }, () => random.below(2 ** 20)),
    );
    maybe('longs', Array.from({ length: random.below(20) }, long));
    maybe(
      'texts',
      Array.from({ length: random.below(20) }, () => 'y'.repeat(random.below(5))),
    );
    maybe('inners', Array.from({ length: random.below(20) }, inner));
    maybe('nested', [[1], [], [2, 3]]);
    const bytes = writeStruct(TABLE, tree);
    const expected = JSON.stringify(readStruct(TABLE, bytes), (_, v) => (typeof v === 'bigint' ? Number(v) : v));
    assert.equal(JSON.stringify(readTree(new CompactReader(bytes), TABLE)), expected);
    // Skipping everything ends at the same place.
    const skipper = new CompactReader(bytes);
    skipper.skip(Wire.STRUCT);
    assert.equal(skipper.pos, bytes.length);
    const cut = new CompactReader(new Uint8Array(0));
    cut.partial = true;
    cut.reset(bytes, 0, random.below(bytes.length));
    assert.throws(
      () => readTree(cut, TABLE),
      (error) => error === CUT,
    );
  }
});

function refuses(bytes: number[], reason: RegExp): void {
  assert.throws(
    () => readTree(new CompactReader(Uint8Array.from(bytes), 1000), TABLE),
    (error) => error instanceof DecodeError && error.code === 'THRIFT' && reason.test(error.message),
  );
}

test('hostile bytes are refused with a place', () => {
  refuses([], /offset 1000: the bytes end/);
  refuses([0x56, ...Array(10).fill(0x80), 0x00], /over 64 bits/); // a varint of 11 bytes
  refuses([0x56, ...Array(9).fill(0xff), 0x02], /over 64 bits/);
  refuses([0x45, ...Array(5).fill(0xff), 0x01], /more than its type can/); // i32 of 36 bits
  refuses([0x78, 0xff, 0xff, 0xff, 0xff, 0x0f], /the bytes end/); // 4 GiB of binary
  refuses([0x78, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], /size over 32 bits/);
  refuses([0x0e, 0x02], /wire type 14 does not exist/);
  refuses([0x10], /wire type 0 does not exist/);
  refuses([0x46, 0x02, 0x00], /field 4 is i64, not i32/);
  refuses([0x09, 0xd8, 0x04, 0x16, 0x02], /holds i64, not i32/); // list of i64 where i32 is due
  refuses([0x09, 0xd8, 0x04, 0xf5, 0xff, 0xff, 0xff, 0xff, 0x0f], /the bytes end/); // 2^32 - 1 elements
});

test('nesting deeper than the bound is refused without deep recursion', () => {
  for (const level of [0x1c, 0x19]) {
    const bytes = new Uint8Array(100_000).fill(level);
    assert.throws(() => new CompactReader(bytes).skip(level === 0x1c ? Wire.STRUCT : Wire.LIST), /nested too deep/);
  }
});

test('a budget bounds the fields and elements that are read', () => {
  const r = new CompactReader(writeStruct(TABLE, { ints: Array(1000).fill(1) }));
  r.budget = 500;
  assert.throws(() => r.skip(Wire.STRUCT), /too many fields/);
});
