/**
 * The FUSE protocol in bytes: requests as Linux 6.18 sent them, replies as it took them, numbers as linux/fuse.h has
 * them, and what is not a request refused with a typed error.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { MountError } from '../errors.ts';
import { answerInit } from '../fuse/init.ts';
import { struct } from '../fuse/loopback.ts';
import * as protocol from '../fuse/protocol.ts';
import * as reply from '../fuse/reply.ts';
import { parseRequest, type RequestBody } from '../fuse/request.ts';
import { newRandom } from './seeded-random.ts';

const hex = (text: string) => Buffer.from(text.replace(/\s+/g, ''), 'hex');
const zeros = (bytes: number) => '00'.repeat(bytes);

/** Requests of a kernel: name, bytes, what they mean. */
const REQUESTS: ReadonlyArray<readonly [string, string, RequestBody, { unique: number; nodeId: number; pid: number }]> =
  [
    [
      'INIT',
      `680000001a000000 0200000000000000 0000000000000000 ${zeros(16)} 070000002d000000 00000200fbffff73 fd050000 ${zeros(44)}`,
      { op: 'INIT', major: 7, minor: 45, maxReadahead: 131072, flags: 0x73fffffb, flags2: 0x5fd },
      { unique: 2, nodeId: 0, pid: 0 },
    ],
    [
      'LOOKUP',
      '2a00000001000000 0600000000000000 0100000000000000 0000000000000000 f719000000000000 6100',
      { op: 'LOOKUP', name: 'a' },
      { unique: 6, nodeId: 1, pid: 0x19f7 },
    ],
    [
      'GETATTR',
      `3800000003000000 0400000000000000 0100000000000000 0000000000000000 f719000000000000 ${zeros(16)}`,
      { op: 'GETATTR', handle: undefined },
      { unique: 4, nodeId: 1, pid: 0x19f7 },
    ],
    [
      'STATX',
      `4000000034000000 0a00000000000000 0300000000000000 0000000000000000 f719000000000000 ${zeros(20)} ff0f0000`,
      { op: 'STATX', handle: undefined },
      { unique: 10, nodeId: 3, pid: 0x19f7 },
    ],
    [
      'GETXATTR',
      '4100000016000000 0c00000000000000 0100000000000000 0000000000000000 f819000000000000 ff00000000000000 73656375726974792e73656c696e757800',
      { op: 'GETXATTR', name: 'security.selinux', size: 255 },
      { unique: 12, nodeId: 1, pid: 0x19f8 },
    ],
    [
      'OPENDIR',
      '300000001b000000 1200000000000000 0100000000000000 0000000000000000 f819000000000000 0088010000000000',
      { op: 'OPENDIR', flags: 0x18800 },
      { unique: 18, nodeId: 1, pid: 0x19f8 },
    ],
    [
      'READDIRPLUS',
      `500000002c000000 1400000000000000 0100000000000000 0000000000000000 f819000000000000 0100000000000000 ${zeros(8)} 0080000000000000 ${zeros(8)} 0088010000000000`,
      { op: 'READDIRPLUS', handle: 1, offset: 0, size: 32768 },
      { unique: 20, nodeId: 1, pid: 0x19f8 },
    ],
    [
      'OPEN',
      '300000000e000000 3c00000000000000 0300000000000000 0000000000000000 fb19000000000000 00c0000000000000',
      { op: 'OPEN', flags: 0xc000 },
      { unique: 60, nodeId: 3, pid: 0x19fb },
    ],
    [
      'READ',
      '500000000f000000 3e00000000000000 0300000000000000 0000000000000000 fb19000000000000 0400000000000000 0000000000000000 0002000002000000 0d8fb6aa0c9fd849 00c0000000000000',
      { op: 'READ', handle: 4, offset: 0, size: 512 },
      { unique: 62, nodeId: 3, pid: 0x19fb },
    ],
    [
      'LISTXATTR',
      '3000000017000000 4200000000000000 0400000000000000 0000000000000000 fd19000000000000 0001000000000000',
      { op: 'LISTXATTR', size: 256 },
      { unique: 66, nodeId: 4, pid: 0x19fd },
    ],
    [
      'RELEASE',
      `4000000012000000 4c00000000000000 0400000000000000 ${zeros(16)} 0500000000000000 0080000000000000 ${zeros(8)}`,
      { op: 'RELEASE', handle: 5 },
      { unique: 76, nodeId: 4, pid: 0 },
    ],
    [
      'FORGET',
      `3000000002000000 5c00000000000000 0400000000000000 ${zeros(16)} 0100000000000000`,
      { op: 'FORGET', forgets: [{ nodeId: 4, lookups: 1 }] },
      { unique: 92, nodeId: 4, pid: 0 },
    ],
    [
      'BATCH_FORGET',
      `500000002a000000 5e00000000000000 0000000000000000 ${zeros(16)} 0200000000000000 0400000000000000 0100000000000000 0500000000000000 0700000000000000`,
      {
        op: 'FORGET',
        forgets: [
          { nodeId: 4, lookups: 1 },
          { nodeId: 5, lookups: 7 },
        ],
      },
      { unique: 94, nodeId: 0, pid: 0 },
    ],
    [
      'INTERRUPT',
      `3000000024000000 3f00000000000000 0000000000000000 ${zeros(16)} 3e00000000000000`,
      { op: 'INTERRUPT', target: 62 },
      { unique: 63, nodeId: 0, pid: 0 },
    ],
    [
      'STATFS',
      '2800000011000000 3a00000000000000 0100000000000000 0000000000000000 fa19000000000000',
      { op: 'STATFS' },
      { unique: 58, nodeId: 1, pid: 0x19fa },
    ],
  ];

test('requests of a kernel', () => {
  for (const [name, text, body, header] of REQUESTS) {
    const request = parseRequest(hex(text));
    assert.deepEqual(request.body, body, name);
    const { unique, nodeId, pid } = request.header;
    assert.deepEqual({ unique, nodeId, pid }, header, name);
  }
});

test('every request that is cut short, or says another length, is refused with its unique', () => {
  for (const [name, text] of REQUESTS) {
    const whole = hex(text);
    for (let length = 0; length < whole.length; length++) {
      // INIT had fewer fields once, and that of another major version has but two
      if (name === 'INIT' && length >= 48) continue;
      const cut = Buffer.from(whole.subarray(0, length));
      if (length >= 4) cut.writeUInt32LE(length, 0);
      assert.throws(
        () => parseRequest(cut),
        (error) => {
          assert.ok(error instanceof MountError && error.code === 'PROTOCOL', `${name} at ${length}: ${error}`);
          const unanswered = length < 40 || /FORGET|INTERRUPT/.test(name);
          assert.equal(error.unique, unanswered ? undefined : whole.readUInt32LE(8));
          return true;
        },
        `${name} of ${length} bytes`,
      );
    }
    const longer = Buffer.concat([whole, Buffer.alloc(1)]);
    assert.throws(() => parseRequest(longer), /says that it has/);
  }
});

test('fields that later versions append, and extensions, do no harm', () => {
  const open = hex(REQUESTS.find(([name]) => name === 'OPEN')![1]);
  const longer = Buffer.concat([open, Buffer.alloc(16)]);
  longer.writeUInt32LE(longer.length, 0);
  assert.deepEqual(parseRequest(longer).body, { op: 'OPEN', flags: 0xc000 });
  const lookup = Buffer.concat([hex(REQUESTS.find(([name]) => name === 'LOOKUP')![1]), Buffer.alloc(16)]);
  lookup.writeUInt32LE(lookup.length, 0);
  assert.throws(() => parseRequest(lookup), /does not end/);
  lookup.writeUInt16LE(2, 36);
  assert.deepEqual(parseRequest(lookup).body, { op: 'LOOKUP', name: 'a' });
  lookup.writeUInt16LE(100, 36);
  assert.throws(() => parseRequest(lookup), /extensions/);
});

test('names: not UTF-8 is nobody’s name, a NUL within or none at the end is an error', () => {
  const lookup = (name: Uint8Array) => {
    const message = Buffer.concat([Buffer.alloc(40), name]);
    message.writeUInt32LE(message.length, 0);
    message.writeUInt32LE(protocol.Opcode.FUSE_LOOKUP, 4);
    return parseRequest(message).body;
  };
  assert.deepEqual(lookup(Buffer.from('zwei ä€😀\0')), { op: 'LOOKUP', name: 'zwei ä€😀' });
  assert.deepEqual(lookup(Buffer.from([0xef, 0xbb, 0xbf, 0x61, 0])), { op: 'LOOKUP', name: '\ufeffa' });
  assert.deepEqual(lookup(Buffer.from([0xff, 0x61, 0])), { op: 'LOOKUP', name: undefined });
  assert.throws(() => lookup(Buffer.from('a\0b\0')), /does not end/);
  assert.throws(() => lookup(Buffer.from('ab')), /does not end/);
  assert.throws(() => lookup(Buffer.alloc(5000, 0x61).fill(0, 4999)), /4999 bytes/);
});

test('bytes that mean nothing are refused with a typed error', () => {
  const random = newRandom('fuse protocol');
  const opcodes = Object.values(protocol.Opcode);
  let refused = 0;
  for (let round = 0; round < 20_000; round++) {
    const kind = round % 3;
    let bytes: Buffer;
    if (kind === 0) bytes = random.bytes(random.below(200));
    else if (kind === 1) {
      bytes = random.bytes(40 + random.below(120));
      bytes.writeUInt32LE(random.below(20) === 0 ? random.below(1 << 30) : bytes.length, 0);
      bytes.writeUInt32LE(random.below(2) === 0 ? opcodes[random.below(opcodes.length)]! : random.below(64), 4);
      bytes.fill(0, 14, 16);
      if (random.below(2) === 0) bytes.fill(0, 22, 24).fill(0, 36, 40);
    } else {
      bytes = hex(REQUESTS[random.below(REQUESTS.length)]![1]);
      for (let k = random.below(4); k >= 0; k--) bytes[random.below(bytes.length)] = random.below(256);
    }
    try {
      parseRequest(bytes);
    } catch (error) {
      assert.ok(error instanceof MountError && error.code === 'PROTOCOL', `${bytes.toString('hex')}: ${error}`);
      refused++;
    }
  }
  assert.ok(refused > 5000 && refused < 20_000, `${refused} refused`);
});

const FILE: reply.NodeAttributes = {
  ino: 3,
  folder: false,
  length: 10_000,
  modifiedMs: 1764500000123,
  uid: 0,
  gid: 0,
  links: 1,
};
const FILE_ATTR =
  '0300000000000000 1027000000000000 1400000000000000 20222c6900000000 20222c6900000000 20222c6900000000' +
  'c0d45407c0d45407c0d45407 24810000 01000000 00000000 00000000 00000000 00100000 00000000';

function assertHex(bytes: Uint8Array, expected: string): void {
  assert.equal(Buffer.from(bytes).toString('hex'), expected.replace(/\s+/g, ''));
}

test('replies as a kernel takes them', () => {
  const hour = '100e000000000000';
  assertHex(reply.buildAttrOut(FILE, 3600), `${hour} ${zeros(8)} ${FILE_ATTR}`);
  assertHex(reply.buildEntryOut(FILE, 3600), `0300000000000000 ${zeros(8)} ${hour} ${hour} ${zeros(8)} ${FILE_ATTR}`);
  assertHex(reply.buildNegativeEntry(3600), `${zeros(16)} ${hour} ${zeros(104)}`);
  assertHex(reply.buildOpenOut(4, 0x22, 7), '0400000000000000 22000000 07000000');
  assertHex(
    reply.buildStatxOut(FILE, 3600),
    `${hour} ${zeros(24)} ff070000 00100000 ${zeros(8)} 01000000 0000000000000000 2481 0000
     0300000000000000 1027000000000000 1400000000000000 ${zeros(8)} 20222c6900000000 c0d4540700000000 ${zeros(16)}
     20222c6900000000 c0d4540700000000 20222c6900000000 c0d4540700000000 ${zeros(128)}`,
  );
  assertHex(
    reply.buildStatfsOut(12_000, 2),
    `0300000000000000 ${zeros(16)} 0200000000000000 ${zeros(8)} 00100000 ff000000 00100000 ${zeros(28)}`,
  );
  assertHex(reply.buildXattrSize(70), '4600000000000000');
  const header = new Uint8Array(16);
  reply.writeOutHeader(new DataView(header.buffer), 16, 61, 12);
  assertHex(header, '10000000 c3ffffff 0c00000000000000');
  reply.writeOutHeader(new DataView(header.buffer), 2 ** 20 + 16, 0, 2 ** 52 + 5);
  assertHex(header, '10001000 00000000 0500000000001000');
  const before1970 = reply.buildAttrOut({ ...FILE, modifiedMs: -1500 }, 1);
  assert.equal(Buffer.from(before1970).readBigInt64LE(16 + 32), -2n);
  assert.equal(Buffer.from(before1970).readUInt32LE(16 + 52), 500_000_000);
});

test('directories as a kernel takes them', () => {
  const plain = new reply.DirectoryBuffer(64, false);
  assert.ok(plain.add({ name: 'ab', ino: 5, folder: true }, 3));
  assert.ok(plain.add({ name: '12345678', ino: 6, folder: false }, 4));
  assert.equal(plain.add({ name: 'x', ino: 7, folder: false }, 5), false);
  assertHex(
    plain.bytes,
    `0500000000000000 0300000000000000 02000000 04000000 6162${zeros(6)}
     0600000000000000 0400000000000000 08000000 08000000 3132333435363738`,
  );
  const plus = new reply.DirectoryBuffer(400, true);
  assert.ok(plus.add({ name: '.', ino: 1, folder: true }, 1));
  assert.ok(plus.add({ name: 'b', ino: 3, folder: false }, 3, FILE, 3600));
  assert.equal(plus.add({ name: 'c', ino: 3, folder: false }, 4), false);
  assertHex(
    plus.bytes,
    `${zeros(128)} 0100000000000000 0100000000000000 01000000 04000000 2e${zeros(7)}
     ${Buffer.from(reply.buildEntryOut(FILE, 3600)).toString('hex')}
     0300000000000000 0300000000000000 01000000 08000000 62${zeros(7)}`,
  );
});

test('notifications as a kernel takes them', () => {
  assertHex(
    reply.buildStoreHeader(3, 2 ** 33, 4096),
    '28100000 04000000 0000000000000000 0300000000000000 0000000002000000 00100000 00000000',
  );
  assertHex(
    reply.buildInvalEntry(1, 'ab'),
    '23000000 03000000 0000000000000000 0100000000000000 02000000 00000000 616200',
  );
  assertHex(
    reply.buildInvalAttributes(7),
    '28000000 02000000 0000000000000000 0700000000000000 ffffffffffffffff 0000000000000000',
  );
});

test('INIT: what is agreed on, with new kernels and old ones', () => {
  const init = (minor: number, flags: number, flags2: number, major = 7) =>
    answerInit({ op: 'INIT', major, minor, maxReadahead: 131072, flags, flags2 }, 120_000);
  const now = init(45, 0x73fffffb, 0x5fd);
  assert.deepEqual(now.offer, { minor: 45, passthrough: true, requestTimeoutS: 180 });
  assertHex(
    now.reply!,
    `07000000 2d000000 00000200 01e06442 4000 3000 00800000 01000000 0001 0000 70040000 01000000 b400 ${zeros(22)}`,
  );
  const newer = init(99, 0x73fffffb, 0x5fd);
  assert.equal(newer.offer!.minor, 45);
  const older = init(31, 0x03fffffb, 0);
  assert.deepEqual(older.offer, { minor: 31, passthrough: false, requestTimeoutS: 0 });
  assert.equal(Buffer.from(older.reply!).readUInt32LE(32), 0);
  const notExtended = init(45, 0x33fffffb, 0x5fd);
  assert.equal(notExtended.offer!.passthrough, false);
  assert.deepEqual(init(27, -1, -1), {});
  assert.deepEqual(init(45, -1, -1, 6), {});
  const major8 = init(0, 0, 0, 8);
  assert.equal(major8.offer, undefined);
  assert.equal(Buffer.from(major8.reply!).readUInt32LE(0), 7);
  assert.equal(struct(8, [1, 2]).readUInt32LE(4), 2);
});

const HEADER = '/usr/include/linux/fuse.h';
test('numbers are those of linux/fuse.h', { skip: existsSync(HEADER) ? false : `${HEADER} is not there` }, () => {
  const text = readFileSync(HEADER, 'utf8');
  const values = new Map<string, number>();
  for (const [, name, one, shift] of text.matchAll(/#define\s+(FUSE_\w+|FOPEN_\w+)\s+\((1U?L*)\s*<<\s*(\d+)\)/g)) {
    values.set(name!, one === undefined ? 0 : Number(shift));
  }
  let compared = 0;
  const bits = { ...protocol.InitFlag, ...protocol.OpenFlag };
  for (const [name, value] of Object.entries(bits)) {
    if (!values.has(name)) continue;
    assert.equal(value, 2 ** values.get(name)!, name);
    compared++;
  }
  for (const [name, value] of Object.entries(protocol.InitFlag2)) {
    if (!values.has(name)) continue;
    assert.equal(value, 2 ** (values.get(name)! - 32), name);
    compared++;
  }
  const enums = { ...protocol.Opcode, ...protocol.NotifyCode };
  for (const [name, value] of Object.entries(enums)) {
    const found = new RegExp(`\\b${name}\\s*=\\s*(\\d+)`).exec(text);
    if (found === null) continue;
    assert.equal(value, Number(found[1]), name);
    compared++;
  }
  assert.ok(compared > 50, `${compared} compared`);
});
