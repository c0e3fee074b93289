/** Random bytes and damaged messages through every decoder: a value inside its bounds, or a ProtocolError. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  decodeFrameHeader,
  decodeHello,
  decodeRequest,
  decodeWelcome,
  depthsValid,
  EVENT_BYTES_MAX,
  encodeHello,
  encodePayloadHeader,
  encodeRead,
  encodeRefusal,
  encodeWelcome,
  PAYLOAD_BYTES_MAX,
  ProtocolError,
  REASON_BYTES_MAX,
  type Request,
  RequestReader,
  viewOf,
} from '../protocol/index.ts';
import { type Random, randomFrom } from './random.ts';

const HELLO = { checksum: true, queueDepth: 128, readBytesMax: 1 << 20, outstandingMax: 16 };
const ROUNDS = 20_000;

function damage(random: Random, bytes: Uint8Array): Uint8Array {
  for (let flips = random.below(3); flips >= 0; flips--) bytes[random.below(bytes.byteLength)] = random.below(256);
  return bytes;
}

/** Runs a decoder on damaged messages and on noise; what it returns is checked, what it throws is a ProtocolError. */
function fuzz<T>(
  name: string,
  make: () => Uint8Array,
  decode: (bytes: Uint8Array) => T,
  check: (value: T) => void,
): void {
  test(name, () => {
    const random = randomFrom(name);
    for (let round = 0; round < ROUNDS; round++) {
      const message = make();
      const bytes =
        round % 4 === 0 ? Uint8Array.from(message, () => random.below(256)) : damage(random, Uint8Array.from(message));
      try {
        check(decode(bytes));
      } catch (error) {
        assert.ok(error instanceof ProtocolError, String(error));
      }
    }
  });
}

fuzz(
  'hello',
  () => encodeHello(HELLO),
  decodeHello,
  (hello) => assert.ok(hello.version === 1 && hello.authBytes <= 4096),
);

const generation = new Uint8Array(16).fill(1);
fuzz(
  'welcome',
  () => encodeWelcome({ ...HELLO, rkey: 5, regionLength: 1 << 30, generation }),
  decodeWelcome,
  (answer) => {
    if ('refusal' in answer) assert.ok(answer.reasonBytes <= REASON_BYTES_MAX);
    else
      assert.ok(
        depthsValid(answer) && Number.isSafeInteger(answer.regionLength) && answer.generation.byteLength === 16,
      );
  },
);

fuzz(
  'refusal',
  () => encodeRefusal(3, '').subarray(0, 64),
  decodeWelcome,
  (answer) => {
    if ('refusal' in answer) assert.ok(answer.refusal > 0 && answer.reasonBytes <= REASON_BYTES_MAX);
  },
);

fuzz(
  'request',
  () => {
    const bytes = new Uint8Array(32);
    encodeRead(viewOf(bytes), 0, { wrId: 1, rkey: 2, address: 3, length: 4 });
    return bytes;
  },
  (bytes) => decodeRequest(viewOf(bytes), 0),
  ({ address }) => assert.ok(Number.isNaN(address) || Number.isSafeInteger(address)),
);

fuzz(
  'frame',
  () => {
    const bytes = new Uint8Array(32);
    const fields = { last: true, payloadBytes: 4, wrLow: 1, wrHigh: 0, offset: 0, status: 0, crc: 0 };
    encodePayloadHeader(viewOf(bytes), 0, fields);
    return bytes;
  },
  (bytes) => decodeFrameHeader(viewOf(bytes), 0),
  ({ payloadBytes, wrId }) => {
    assert.ok(payloadBytes <= Math.max(PAYLOAD_BYTES_MAX, EVENT_BYTES_MAX) && Number.isSafeInteger(wrId));
  },
);

test('a stream in random pieces gives the same requests, and damage ends it once', () => {
  const random = randomFrom('request stream');
  for (let round = 0; round < 500; round++) {
    const count = random.below(40);
    const stream = new Uint8Array(count * 32);
    for (let i = 0; i < count; i++) {
      encodeRead(viewOf(stream), i * 32, { wrId: i, rkey: i, address: i * 1000, length: i });
    }
    const damaged = count > 0 && round % 3 === 0;
    if (damaged) damage(random, stream);
    const bytes = Buffer.concat([encodeHello(HELLO, Buffer.alloc(random.below(100))), stream]);
    const got: Request[] = [];
    let greetings = 0;
    const reader = new RequestReader({
      onHello: () => ++greetings > 0,
      onRequest: (request) => got.push(request) > 0,
    });
    let errors = 0;
    for (let at = 0; at < bytes.byteLength; ) {
      const end = at + 1 + random.below(random.below(2) === 0 ? 5 : 300);
      try {
        reader.push(bytes.subarray(at, end));
      } catch (error) {
        assert.ok(error instanceof ProtocolError, String(error));
        errors++;
      }
      at = end;
    }
    assert.equal(greetings, 1);
    assert.ok(errors <= 1);
    if (!damaged)
      assert.deepEqual(
        got.map(({ wrLow, address }) => [wrLow, address]),
        got.map((_, i) => [i, i * 1000]),
      );
    if (!damaged) assert.equal(got.length, count);
  }
});
