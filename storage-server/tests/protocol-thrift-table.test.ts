/** The table driver against round trips, a reference encoding and hostile bytes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  optional,
  ProtocolError,
  readStruct,
  required,
  type StructValue,
  structTable,
  thriftBinary,
  thriftBool,
  thriftDouble,
  thriftI8,
  thriftI16,
  thriftI32,
  thriftI64,
  thriftList,
  thriftSet,
  thriftString,
  thriftStruct,
  writeStruct,
} from '../protocol/index.ts';
import { type Random, randomFrom } from './random.ts';

const INNER = structTable('Inner', { flag: optional(1, thriftBool), name: required(2, thriftString) });
const ALL = structTable('All', {
  yes: required(1, thriftBool),
  no: optional(2, thriftBool),
  byte: optional(3, thriftI8),
  short: optional(40, thriftI16),
  int: optional(41, thriftI32),
  long: optional(42, thriftI64),
  double: optional(43, thriftDouble),
  bytes: optional(44, thriftBinary),
  text: optional(45, thriftString),
  flags: optional(46, thriftList(thriftBool)),
  longs: optional(47, thriftSet(thriftI64)),
  inners: optional(48, thriftList(thriftStruct(INNER))),
  inner: optional(49, thriftStruct(INNER)),
  nested: optional(50, thriftList(thriftList(thriftI32))),
});
/** Reads what ALL wrote and knows none of it but the first field. */
const FIRST = structTable('First', { yes: required(1, thriftBool) });

function someInteger(random: Random, bits: number): number {
  const magnitude = 2 ** random.below(bits);
  return random.below(2) === 0 ? random.below(magnitude) : -random.below(magnitude) - 1;
}

function someText(random: Random): string {
  return Array.from({ length: random.below(20) }, () => String.fromCodePoint(random.below(0xd800))).join('');
}

function someValue(random: Random): StructValue<typeof ALL> {
  const inner = (): StructValue<typeof INNER> => ({
    name: someText(random),
    ...(random.below(2) === 0 ? {} : { flag: random.below(2) === 0 }),
  });
  const all: Required<StructValue<typeof ALL>> = {
    yes: random.below(2) === 0,
    no: random.below(2) === 0,
    byte: someInteger(random, 8),
    short: someInteger(random, 16),
    int: someInteger(random, 32),
    long: someInteger(random, 54),
    double: [0, -0, Number.NaN, Infinity, 5e-324, Math.PI, -1e300][random.below(7)]!,
    bytes: Uint8Array.from({ length: random.below(300) }, () => random.below(256)),
    text: someText(random),
    flags: Array.from({ length: random.below(20) }, () => random.below(2) === 0),
    longs: Array.from({ length: random.below(20) }, () => someInteger(random, 54)),
    inners: Array.from({ length: random.below(20) }, inner),
    inner: inner(),
    nested: Array.from({ length: random.below(4) }, () => [1, -2, 2 ** 31 - 1, -(2 ** 31)].slice(random.below(5))),
  };
  const value: Record<string, unknown> = { ...all };
  for (const property of Object.keys(value)) if (property !== 'yes' && random.below(3) === 0) delete value[property];
  return value as StructValue<typeof ALL>;
}

test('round trip of every type, and every field skipped by who does not know it', () => {
  const random = randomFrom('thrift round trip');
  for (let round = 0; round < 500; round++) {
    const value = someValue(random);
    const bytes = writeStruct(ALL, value);
    const padded = new Uint8Array([...bytes, 1, 2, 3]);
    const read = readStruct(ALL, padded);
    assert.deepEqual(read, { value, bytesRead: bytes.byteLength });
    assert.deepEqual(readStruct(FIRST, padded), { value: { yes: value.yes }, bytesRead: bytes.byteLength });
  }
});

test('integers are the zigzag varints of the specification', () => {
  const LONG = structTable('Long', { long: required(1, thriftI64) });
  const powers = Array.from({ length: 53 }, (_, k) => [2 ** k, 2 ** k - 1, -(2 ** k), -(2 ** k) - 1]).flat();
  for (const long of [...powers, 2 ** 53 - 1, -(2 ** 53) + 1]) {
    let zigzag = BigInt.asUintN(64, (BigInt(long) << 1n) ^ (BigInt(long) >> 63n));
    const varint: number[] = [];
    for (; zigzag > 127n; zigzag >>= 7n) varint.push(Number(zigzag & 127n) | 128);
    varint.push(Number(zigzag));
    assert.deepEqual([...writeStruct(LONG, { long })], [0x16, ...varint, 0]);
    assert.equal(readStruct(LONG, Uint8Array.of(0x16, ...varint, 0)).value.long, long);
  }
});

test('what the writer refuses', () => {
  for (const value of [{ yes: true, byte: 128 }, { yes: true, long: 2 ** 53 }, { yes: true, int: 1.5 }, {}]) {
    assert.throws(() => writeStruct(ALL, value as StructValue<typeof ALL>), ProtocolError);
  }
});

test('hostile structures', () => {
  const huge = [0xff, 0xff, 0xff, 0xff, 0x0f];
  const cases: Record<string, number[]> = {
    'nothing at all': [],
    'no stop': [0x11],
    'required field missing': [0x00],
    'list of 4 billion': [0x11, 0x05, 92, 0xfc, ...huge],
    'list of 2^63': [0x11, 0x05, 92, 0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
    'string of 4 billion': [0x11, 0x08, 90, ...huge],
    'endless varint': [0x11, 0x06, 84, ...Array(20).fill(0xff)],
    'i64 beyond 2^53': [0x11, 0x06, 84, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0],
    'i32 beyond its range': [0x11, 0x05, 82, 0xfe, 0xff, 0xff, 0xff, 0x7f, 0],
    'wrong type': [0x15, 2, 0],
    'wrong element type': [0x11, 0x09, 92, 0x15, 2, 0],
    'unknown type nibble': [0x11, 0x0f, 92, 0],
    'unknown map of 4 billion': [0x11, 0x0b, 0x7e, ...huge, 0x55],
    'unknown list of 4 billion bools': [0x11, 0x09, 0x7e, 0xf1, ...huge],
    'text that is not UTF-8': [0x11, 0x08, 90, 1, 0xff, 0],
    'bool element that is none': [0x11, 0x09, 92, 0x11, 3, 0],
    'unknown structs without end': [0x11, ...Array(200).fill(0x1c)],
    'unknown lists without end': [0x11, 0x19, ...Array(200).fill(0x19)],
    'nested beyond the limit': [0x11, 0x0c, 0x7e, ...Array(40).fill(0x1c), ...Array(42).fill(0)],
  };
  for (const [name, bytes] of Object.entries(cases)) {
    assert.throws(
      () => readStruct(ALL, Uint8Array.from(bytes)),
      (error) => error instanceof ProtocolError && error.code === 'THRIFT',
      name,
    );
  }
});

test('random bytes never give more than a ProtocolError', () => {
  const random = randomFrom('thrift bytes');
  for (let round = 0; round < 5000; round++) {
    const bytes =
      round % 2 === 0
        ? Uint8Array.from({ length: random.below(80) }, () => random.below(256))
        : writeStruct(ALL, someValue(random));
    if (bytes.byteLength > 0 && round % 2 === 1) bytes[random.below(bytes.byteLength)] = random.below(256);
    try {
      readStruct(ALL, bytes);
    } catch (error) {
      assert.ok(error instanceof ProtocolError, String(error));
    }
  }
});
