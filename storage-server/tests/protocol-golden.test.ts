/** Golden bytes of every message in PROTOCOL.md: these may only change together with the protocol's version. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  decodeFrameHeader,
  decodeGenerationEvent,
  decodeHello,
  decodeRequest,
  decodeWelcome,
  EVENT,
  encodeClose,
  encodeClosed,
  encodeGenerationEvent,
  encodeHello,
  encodePayloadHeader,
  encodeRead,
  encodeRefusal,
  encodeWelcome,
  parseDirectory,
  parseDirectorySize,
  planDirectory,
  REFUSAL,
  viewOf,
  WC,
} from '../protocol/index.ts';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const GENERATION = Uint8Array.from({ length: 16 }, (_, i) => 0xa0 + i);

test('hello', () => {
  const bytes = encodeHello(
    { checksum: true, queueDepth: 128, readBytesMax: 0x800000, outstandingMax: 16 },
    Buffer.from('tok'),
  );
  assert.equal(
    hex(bytes),
    '514e4154' + '0100' + '0100' + '80000000' + '00008000' + '10000000' + '03000000' + '0000000000000000' + '746f6b',
  );
  assert.deepEqual(decodeHello(bytes.subarray(0, 32)), {
    version: 1,
    checksum: true,
    queueDepth: 128,
    readBytesMax: 0x800000,
    outstandingMax: 16,
    authBytes: 3,
  });
});

test('welcome', () => {
  const welcome = {
    checksum: false,
    queueDepth: 128,
    readBytesMax: 0x800000,
    outstandingMax: 16,
    rkey: 0xdeadbeef,
    regionLength: 0x12345678_9a,
    generation: GENERATION,
  };
  const bytes = encodeWelcome(welcome);
  assert.equal(
    hex(bytes),
    '514e4154' +
      '0100' +
      '0000' +
      '80000000' +
      '00008000' +
      '10000000' +
      'efbeadde' +
      '9a78563412000000' +
      'a0a1a2a3a4a5a6a7a8a9aaabacadaeaf' +
      '0000' +
      '0000' +
      '000000000000000000000000',
  );
  assert.deepEqual(decodeWelcome(bytes), welcome);
});

test('refusal', () => {
  const bytes = encodeRefusal(REFUSAL.NO_RESOURCES, 'full');
  assert.equal(hex(bytes), `514e415401000300${'00'.repeat(42)}0400${'00'.repeat(12)}66756c6c`);
  assert.deepEqual(decodeWelcome(bytes.subarray(0, 64)), { refusal: REFUSAL.NO_RESOURCES, reasonBytes: 4 });
  assert.ok(encodeRefusal(REFUSAL.CLOSING, 'ü'.repeat(1000)).byteLength <= 64 + 512);
});

test('read request and close', () => {
  const bytes = new Uint8Array(32);
  encodeRead(viewOf(bytes), 0, { wrId: 0x1_0000_0002, rkey: 0x01020304, address: 0x5_0000_0006, length: 0x10000 });
  assert.equal(
    hex(bytes),
    '5152' + '01' + '00' + '04030201' + '0200000001000000' + '0600000005000000' + '00000100' + '00000000',
  );
  assert.deepEqual(decodeRequest(viewOf(bytes), 0), {
    opcode: 1,
    rkey: 0x01020304,
    wrLow: 2,
    wrHigh: 1,
    address: 0x5_0000_0006,
    length: 0x10000,
  });
  assert.equal(hex(encodeClose()), `51520200${'00'.repeat(28)}`);
});

test('an address beyond 2^53 decodes to no number', () => {
  const bytes = new Uint8Array(32);
  encodeRead(viewOf(bytes), 0, { wrId: 1, rkey: 1, address: 0, length: 1 });
  bytes.fill(0xff, 16, 24);
  assert.ok(Number.isNaN(decodeRequest(viewOf(bytes), 0).address));
});

test('frames', () => {
  const bytes = new Uint8Array(32);
  encodePayloadHeader(viewOf(bytes), 0, {
    last: true,
    payloadBytes: 0x100,
    wrLow: 2,
    wrHigh: 1,
    offset: 0x300,
    status: WC.SUCCESS,
    crc: 0xcafef00d,
  });
  assert.equal(
    hex(bytes),
    '5146' + '01' + '01' + '00010000' + '0200000001000000' + '00030000' + '00000000' + '0df0feca' + '00000000',
  );
  assert.deepEqual(decodeFrameHeader(viewOf(bytes), 0), {
    kind: 1,
    last: true,
    stale: false,
    payloadBytes: 0x100,
    wrId: 0x1_0000_0002,
    offset: 0x300,
    status: 0,
    crc: 0xcafef00d,
  });
  assert.equal(hex(encodeClosed()), `51460300${'00'.repeat(28)}`);
});

test('stale errors', () => {
  for (const status of [WC.REM_ACCESS_ERR, WC.REM_OP_ERR]) {
    const bytes = new Uint8Array(32);
    const frame = { last: true, stale: true, payloadBytes: 4, wrLow: 7, wrHigh: 0, offset: 0, status, crc: 0 };
    encodePayloadHeader(viewOf(bytes), 0, frame);
    assert.equal(hex(bytes), `51460103040000000700000000000000000000000${status.toString(16)}${'00'.repeat(11)}`);
    assert.equal(decodeFrameHeader(viewOf(bytes), 0).stale, true);
  }
  for (const status of [WC.SUCCESS, WC.REM_INV_REQ_ERR]) {
    const bytes = new Uint8Array(32);
    const frame = { last: true, stale: true, payloadBytes: 4, wrLow: 7, wrHigh: 0, offset: 0, status, crc: 0 };
    encodePayloadHeader(viewOf(bytes), 0, frame);
    assert.throws(() => decodeFrameHeader(viewOf(bytes), 0), { code: 'FRAME' });
  }
});

test('the event of a new generation', () => {
  const served = { generation: GENERATION, rkey: 0xdeadbeef, regionLength: 0x12345678_9a };
  const bytes = encodeGenerationEvent(served, false);
  const payload = `a0a1a2a3a4a5a6a7a8a9aaabacadaeafefbeadde000000009a78563412000000`;
  assert.equal(hex(bytes), `51460200200000000000000000000000000000000100000000000000000000${'00'}${payload}`);
  const header = decodeFrameHeader(viewOf(bytes), 0);
  assert.deepEqual([header.kind, header.status, header.payloadBytes], [2, EVENT.GENERATION, 32]);
  assert.deepEqual(decodeGenerationEvent(bytes.subarray(32)), served);
  const checked = encodeGenerationEvent(served, true);
  assert.equal(hex(checked.subarray(24, 28)), 'ff7a6eec');
  assert.equal(hex(checked.subarray(32)), payload);
  const bad: [Uint8Array, string][] = [
    [bytes.subarray(32, 63), 'LENGTH'],
    [new Uint8Array(33), 'LENGTH'],
    [new Uint8Array(32).fill(1, 20, 21), 'FRAME'],
    [new Uint8Array(32).fill(0xff, 24, 32), 'NUMBER'],
  ];
  for (const [event, code] of bad) assert.throws(() => decodeGenerationEvent(event), { code });
});

test('directory', () => {
  const { directory, prefix } = planDirectory(GENERATION, 64, [
    { path: 'b.parquet', length: 100, etag: 'e2', modifiedMs: 1_700_000_000_000 },
    { path: 'a/x.parquet', length: 0, etag: 'e1', modifiedMs: 0 },
    { path: 'ä.parquet', length: 1, etag: 'e3', modifiedMs: 1 },
  ]);
  assert.equal(
    hex(prefix),
    '6a00000000000000' + // size
      '1502' + // version 1
      '1810a0a1a2a3a4a5a6a7a8a9aaabacadaeaf' + // generation
      '158001' + // alignment 64
      '193c' + // three structs
      '180b612f782e706172717565741600160018026531160000' +
      '1809622e70617271756574160016c801180265321680a0abfef962' +
      '00' +
      '180ac3a42e706172717565741680021602180265331602' +
      '00' +
      '00' + // end of the directory
      '5a7708f1', // CRC-32
  );
  assert.equal(directory.dataStart, 128);
  assert.equal(directory.regionLength, 128 + 192);
  assert.deepEqual(
    directory.entries.map(({ path, offset }) => [path, offset]),
    [
      ['a/x.parquet', 0],
      ['b.parquet', 0],
      ['ä.parquet', 128],
    ],
  );
  const size = parseDirectorySize(prefix.subarray(0, 8), directory.regionLength);
  assert.equal(size, prefix.byteLength - 8);
  assert.deepEqual(parseDirectory(prefix.subarray(8), directory.regionLength), directory);
});
