/** Messages that set up READs over RDMA: golden bytes, and values that none may have. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  decodeFrameHeader,
  decodeHello,
  decodeRequest,
  decodeVerbsAnswer,
  decodeVerbsRegionEvent,
  decodeWelcome,
  EVENT,
  encodeHello,
  encodeVerbsAnswer,
  encodeVerbsRegionEvent,
  encodeVerbsRequest,
  encodeWelcome,
  FRAME_HEADER_BYTES,
  isProtocolError,
  OPCODE,
  ProtocolError,
  viewOf,
} from '../protocol/index.ts';
import { randomFrom } from './random.ts';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const GID = Uint8Array.from(Buffer.from('00000000000000000000ffff0a4d0001', 'hex'));
const GENERATION = Uint8Array.from({ length: 16 }, (_, i) => 0xa0 + i);
const ENDPOINT = { qpn: 0x123456, psn: 0xabcdef, lid: 0x1234, gid: GID, mtu: 5, readsMax: 16 };
const ENDPOINT_HEX = '56341200' + '00000000000000000000ffff0a4d0001' + 'efcdab00' + '3412' + '05' + '10';
const REGION = { generation: GENERATION, rkey: 0xdeadbeef, address: 0x7f12_3456_7000, length: 0x1234_5678_9a };
const REGION_HEX = `${hex(GENERATION)}efbeadde00000000${'007056341' + '27f0000'}9a78563412000000`;

const refuses = (code: string, act: () => unknown): void => {
  assert.throws(act, (error) => error instanceof ProtocolError && error.code === code);
};

test('hello and welcome say that there is a device', () => {
  const depths = { queueDepth: 128, readBytesMax: 0x800000, outstandingMax: 16 };
  const hello = encodeHello({ checksum: true, verbs: true, ...depths });
  assert.equal(hex(hello.subarray(0, 8)), '514e4154' + '0100' + '0300');
  assert.deepEqual(decodeHello(hello), { version: 1, checksum: true, verbs: true, ...depths, authBytes: 0 });
  const welcome = { checksum: false, verbs: true, ...depths, rkey: 1, regionLength: 100, generation: GENERATION };
  const bytes = encodeWelcome(welcome);
  assert.equal(hex(bytes.subarray(48, 52)), '0200' + '0000');
  assert.deepEqual(decodeWelcome(bytes), welcome);
  bytes[48] = 4;
  refuses('FRAME', () => decodeWelcome(bytes));
});

test('a VERBS request', () => {
  const bytes = encodeVerbsRequest(ENDPOINT);
  assert.equal(hex(bytes), `51520300${ENDPOINT_HEX}`);
  const request = decodeRequest(viewOf(bytes), 0);
  assert.equal(request.opcode, OPCODE.VERBS);
  assert.deepEqual(request.verbs, ENDPOINT);
});

test('the answer, and the next region', () => {
  const frame = encodeVerbsAnswer({ endpoint: ENDPOINT, region: REGION }, false);
  const payload = frame.subarray(FRAME_HEADER_BYTES);
  assert.equal(hex(payload), `00000000${ENDPOINT_HEX}${REGION_HEX}`);
  assert.equal(decodeFrameHeader(viewOf(frame), 0).status, EVENT.VERBS);
  assert.deepEqual(decodeVerbsAnswer(payload), { endpoint: ENDPOINT, region: REGION });

  const refused = encodeVerbsAnswer({ reason: 'no queue pair' }, true).subarray(FRAME_HEADER_BYTES);
  assert.equal(hex(refused.subarray(0, 4)), '01000d00');
  assert.ok(refused.subarray(4, 72).every((byte) => byte === 0));
  assert.deepEqual(decodeVerbsAnswer(refused), { reason: 'no queue pair' });

  const next = encodeVerbsRegionEvent(REGION, false);
  assert.equal(decodeFrameHeader(viewOf(next), 0).status, EVENT.VERBS_REGION);
  assert.equal(hex(next.subarray(FRAME_HEADER_BYTES)), REGION_HEX);
  assert.deepEqual(decodeVerbsRegionEvent(next.subarray(FRAME_HEADER_BYTES)), REGION);
});

test('numbers that no end can have are refused before a library sees them', () => {
  for (const bad of [
    { qpn: 0 },
    { qpn: 1 },
    { qpn: 2 ** 24 },
    { psn: 2 ** 24 },
    { mtu: 0 },
    { mtu: 6 },
    { readsMax: 0 },
    { lid: 0, gid: new Uint8Array(16) },
  ]) {
    refuses('FRAME', () => encodeVerbsRequest({ ...ENDPOINT, ...bad }));
  }
  const bytes = encodeVerbsRequest(ENDPOINT);
  for (const [at, value] of [
    [7, 1], // 25th bit of the queue pair number
    [27, 1], // of the packet sequence number
    [30, 0], // MTU
    [31, 0], // READs
  ] as const) {
    const damaged = Uint8Array.from(bytes);
    damaged[at] = value;
    refuses('FRAME', () => decodeRequest(viewOf(damaged), 0));
  }
  const far = encodeVerbsRegionEvent({ ...REGION, address: 2 ** 53 - 1, length: 1 }, false);
  refuses('NUMBER', () => decodeVerbsRegionEvent(far.subarray(FRAME_HEADER_BYTES)));
});

test('random damage gives what an end may have, or a ProtocolError', () => {
  const random = randomFrom('damaged messages about RDMA');
  const messages = [
    encodeVerbsAnswer({ endpoint: ENDPOINT, region: REGION }, false),
    encodeVerbsAnswer({ reason: 'why not' }, false),
  ].map((frame) => frame.subarray(FRAME_HEADER_BYTES));
  const request = encodeVerbsRequest(ENDPOINT);
  let decoded = 0;
  for (let round = 0; round < 20_000; round++) {
    const bytes = Uint8Array.from(round % 3 === 2 ? request : messages[round % 3]!);
    for (let flips = random.below(3); flips >= 0; flips--) bytes[random.below(bytes.length)]! ^= 1 << random.below(8);
    const cut = round % 3 !== 2 && random.below(5) === 0 ? bytes.subarray(0, random.below(bytes.length)) : bytes;
    try {
      const answer = round % 3 === 2 ? decodeRequest(viewOf(cut), 0).verbs : decodeVerbsAnswer(cut);
      if (answer === undefined || 'reason' in answer) continue;
      const { qpn, psn, mtu, readsMax } = 'endpoint' in answer ? answer.endpoint : answer;
      assert.ok(qpn > 1 && qpn < 2 ** 24 && psn < 2 ** 24 && mtu >= 1 && mtu <= 5 && readsMax >= 1);
      decoded++;
    } catch (error) {
      if (!isProtocolError(error)) throw error;
    }
  }
  assert.ok(decoded > 1000, `${decoded} were decoded`);
});
