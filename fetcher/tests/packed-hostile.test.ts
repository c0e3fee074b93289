/** Packed files that are damaged or lie: refused by who reads them and by who serves them, with the file and the place. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { crc32 } from 'node:zlib';
import { packRegion, ServeError, serveRegion } from '../../storage-server/index.ts';
import {
  required,
  structTable,
  thriftBinary,
  thriftI32,
  thriftI64,
  thriftList,
  thriftString,
  thriftStruct,
  writeStruct,
} from '../../storage-server/protocol/index.ts';
import { FetchError } from '../errors.ts';
import { openTransport } from '../transport/open-transport.ts';
import { seededRandom } from './random.ts';
import { makeFolder, pattern } from './transport-fixtures.ts';

const ENTRY = structTable('Entry', {
  path: required(1, thriftString),
  offset: required(2, thriftI64),
  length: required(3, thriftI64),
  etag: required(4, thriftString),
  modifiedMs: required(5, thriftI64),
});
const DIRECTORY = structTable('Directory', {
  version: required(1, thriftI32),
  generation: required(2, thriftBinary),
  alignBytes: required(3, thriftI32),
  entries: required(4, thriftList(thriftStruct(ENTRY))),
});

const GOOD = {
  version: 1,
  generation: new Uint8Array(16).fill(7),
  alignBytes: 64,
  entries: [
    { path: 'a.parquet', offset: 0, length: 100, etag: 'a1', modifiedMs: 1 },
    { path: 'b.parquet', offset: 128, length: 50, etag: 'b1', modifiedMs: 1 },
  ],
};

/** A packed file whose directory says what it is told to, checksum and all, and has room for `dataBytes`. */
function packedSaying(directory: Partial<typeof GOOD>, dataBytes = 192): Buffer {
  const structure = writeStruct(DIRECTORY, { ...GOOD, ...directory });
  const prefix = Buffer.alloc(8 + structure.byteLength + 4);
  prefix.writeBigUInt64LE(BigInt(structure.byteLength + 4));
  prefix.set(structure, 8);
  prefix.writeUInt32LE(crc32(structure), 8 + structure.byteLength);
  const padding = (64 - (prefix.byteLength % 64)) % 64;
  return Buffer.concat([prefix, Buffer.alloc(padding + dataBytes)]);
}

const entries = (second: Partial<(typeof GOOD)['entries'][number]>) => ({
  entries: [GOOD.entries[0]!, { ...GOOD.entries[1]!, ...second }],
});

/** Both sides refuse the file, by the same words. */
async function refuse(t: TestContext, bytes: Uint8Array, reason: RegExp): Promise<void> {
  const file = join(makeFolder(t, { 'lake.qanat': bytes }), 'lake.qanat');
  const { transport } = await openTransport(`file://${file}!/`);
  await assert.rejects(transport.list(''), (error) => {
    assert.ok(error instanceof FetchError && error.code === 'PACKED', String(error));
    assert.match(error.reason, /^lake\.qanat: no packed region, or a damaged one, at byte \d+: /);
    assert.match(error.reason, reason);
    return true;
  });
  await transport.close();
  await assert.rejects(serveRegion({ roots: [file], listen: { host: '127.0.0.1', port: 0 } }), (error) => {
    assert.ok(error instanceof ServeError && error.code === 'PACKED', String(error));
    assert.match(error.reason, /lake\.qanat: no packed region, or a damaged one, at byte \d+: /);
    assert.match(error.reason, reason);
    return true;
  });
}

test('what the tests write is read', async (t) => {
  const file = join(makeFolder(t, { 'lake.qanat': packedSaying({}) }), 'lake.qanat');
  const { transport } = await openTransport(`file://${file}!/`);
  assert.deepEqual(
    (await transport.list('')).map(({ path, length, etag }) => [path, length, etag]),
    [
      ['a.parquet', 100, 'a1'],
      ['b.parquet', 50, 'b1'],
    ],
  );
});

const size = (value: bigint): Buffer => {
  const bytes = packedSaying({});
  bytes.writeBigUInt64LE(value);
  return bytes;
};

const CASES: readonly [name: string, bytes: () => Buffer, reason: RegExp][] = [
  ['empty', () => Buffer.alloc(0), /at byte 0: /],
  ['shorter than its size field', () => Buffer.from([1, 0, 0]), /at byte 0: /],
  ['nothing but zeros', () => Buffer.alloc(4096), /at byte 0: directory size 0/],
  ['a Parquet file', () => Buffer.from('PAR1 and so on, as Parquet files go. PAR1'), /at byte /],
  ['a directory size beyond the file', () => size(4096n), /at byte 0: directory size 4096 in a region of/],
  ['a directory size of 2^63', () => size(2n ** 63n), /at byte 0: directory size is beyond/],
  ['a directory size of 1 GiB', () => size(2n ** 30n), /at byte 0: directory size 1073741824/],
  ['a checksum that does not match', () => damaged(packedSaying({}), 20), /directory does not match its checksum/],
  ['cut behind its directory', () => packedSaying({}).subarray(0, 192), /"a\.parquet" ends at \d+ in a region of/],
  ['cut by one byte', () => packedSaying({}).subarray(0, -1), /the file has \d+ bytes, what its directory says takes/],
  ['longer than it should be', () => packedSaying({}, 193), /the file has \d+ bytes, what its directory says takes/],
  ['overlapping entries', () => packedSaying(entries({ offset: 64 })), /"b\.parquet" overlaps another file at 64/],
  ['an entry beyond the end', () => packedSaying(entries({ offset: 192 })), /"b\.parquet" ends at/],
  ['a length that overflows', () => packedSaying(entries({ length: 2 ** 53 - 1 })), /overflows/],
  ['a negative length', () => packedSaying(entries({ length: -1 })), /negative offset or length/],
  ['a negative offset', () => packedSaying(entries({ offset: -64 })), /negative offset or length/],
  ['an entry off its border', () => packedSaying(entries({ offset: 130 })), /not aligned to 64/],
  ['an alignment of 3', () => packedSaying({ alignBytes: 3 }), /alignment 3/],
  ['a path that climbs', () => packedSaying(entries({ path: '../b.parquet' })), /has a segment ".."/],
  ['an absolute path', () => packedSaying(entries({ path: '/etc/passwd' })), /is absolute/],
  ['the same path twice', () => packedSaying(entries({ path: 'a.parquet' })), /same path/],
  ['a file that is a folder', () => packedSaying(entries({ path: 'a.parquet/b' })), /both a file and a folder/],
  ['no etag', () => packedSaying(entries({ etag: '' })), /has no usable etag/],
  ['another version', () => packedSaying({ version: 2 }), /directory version 2/],
  ['half a generation', () => packedSaying({ generation: new Uint8Array(8) }), /generation of 8 bytes/],
];

function damaged(bytes: Buffer, at: number): Buffer {
  bytes[at]! ^= 0x10;
  return bytes;
}

for (const [name, bytes, reason] of CASES) {
  test(`refused: ${name}`, (t) => refuse(t, bytes(), reason));
}

test('random damage to the directory, and cuts anywhere, are refused', async (t) => {
  const random = seededRandom();
  const folder = makeFolder(t, { 'a.parquet': pattern(3000, 1), 'deep/er/b.parquet': pattern(100, 2) });
  const file = join(makeFolder(t, {}), 'lake.qanat');
  await packRegion({ roots: [folder], output: file });
  const good = readFileSync(file);
  const directoryEnd = 8 + Number(good.readBigUInt64LE());
  for (let round = 0; round < 150; round++) {
    const cut = round % 3 === 0;
    const bytes = Buffer.from(cut ? good.subarray(0, random.below(good.byteLength)) : good);
    if (!cut) bytes[random.below(directoryEnd)]! ^= 1 << random.below(8);
    writeFileSync(file, bytes);
    const { transport } = await openTransport(`file://${file}!/`);
    await assert.rejects(transport.list(''), (error) => error instanceof FetchError && error.code === 'PACKED');
    await transport.close();
  }
});
