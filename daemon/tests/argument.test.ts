/** Values of options as people write them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  bytesFrom,
  formatBytes,
  formatCounted,
  orAuto,
  parseBytes,
  parseDuration,
  parseHostPort,
  parseNames,
  parseSwitch,
  wholeFrom,
} from '../argument.ts';
import { CommandError } from '../errors.ts';

const isUsage = (error: unknown): boolean => error instanceof CommandError && error.code === 'USAGE';

test('sizes: bytes, binary and decimal units', () => {
  const cases: [string, number][] = [
    ['0', 0],
    ['1048576', 1048576],
    ['256MiB', 256 * 2 ** 20],
    ['256 mib', 256 * 2 ** 20],
    ['1GB', 1e9],
    ['1.5GiB', 1.5 * 2 ** 30],
    ['64k', 65536],
    ['2G', 2 ** 31],
    ['10B', 10],
  ];
  for (const [text, bytes] of cases) assert.equal(parseBytes(text), bytes, text);
  for (const text of ['', 'MiB', '-1', '1 2', '1MBs', '1e9', '0x10', '99999999TB', 'auto', '1,5GB']) {
    assert.throws(() => parseBytes(text), isUsage, text);
  }
  assert.throws(() => bytesFrom(1024, 2 ** 20)('1023'), /at least 1 KiB, at most 1 MiB/);
  assert.equal(orAuto(bytesFrom(0, 10))('AUTO'), 'auto');
});

test('whole numbers, times, switches', () => {
  assert.equal(wholeFrom(1, 64)('64'), 64);
  for (const text of ['0', '65', '1.5', '', '-1', '1e1', 'one'])
    assert.throws(() => wholeFrom(1, 64)(text), isUsage, text);
  assert.equal(parseDuration('30'), 30_000);
  assert.equal(parseDuration('1.5s'), 1500);
  assert.equal(parseDuration('500ms'), 500);
  assert.equal(parseDuration('2m'), 120_000);
  for (const text of ['', '0', 'soon', '1h', '-1s', '100000000'])
    assert.throws(() => parseDuration(text), isUsage, text);
  assert.equal(parseSwitch('YES'), true);
  assert.equal(parseSwitch('0'), false);
  assert.throws(() => parseSwitch('maybe'), isUsage);
});

test('names: commas separate, quotes hold them', () => {
  assert.deepEqual(parseNames('a,b'), ['a', 'b']);
  assert.deepEqual(parseNames('"a,b",c'), ['a,b', 'c']);
  assert.deepEqual(parseNames('"say ""hi""","x"'), ['say "hi"', 'x']);
  assert.deepEqual(parseNames('a b,__proto__,ü'), ['a b', '__proto__', 'ü']);
  assert.deepEqual(parseNames('a"b'), ['a"b']);
  assert.deepEqual(parseNames('id, name ,"c, d" , " e "'), ['id', 'name', 'c, d', ' e ']);
  for (const text of ['', ' ', 'a,', ',a', 'a,,b', 'a, ,b', '"a', '"a"b', '""'])
    assert.throws(() => parseNames(text), isUsage, text);
});

test('addresses', () => {
  assert.deepEqual(parseHostPort('127.0.0.1:0'), { host: '127.0.0.1', port: 0 });
  assert.deepEqual(parseHostPort('[::1]:7400'), { host: '::1', port: 7400 });
  assert.deepEqual(parseHostPort('lake.example:65535'), { host: 'lake.example', port: 65535 });
  for (const text of ['7400', ':7400', 'host', 'host:', 'host:65536', '::1:7400', 'host:1/x', 'a b:1']) {
    assert.throws(() => parseHostPort(text), isUsage, text);
  }
});

test('a port that is none is told', () => {
  for (const text of ['localhost:99999', '[::1]:123456'])
    assert.throws(() => parseHostPort(text), /ports are 1 to 65535/);
});

test('sizes and counts for people', () => {
  assert.deepEqual(
    [0, 1, 2000].map((count) => formatCounted(count, 'file')),
    ['0 files', '1 file', '2,000 files'],
  );
  assert.equal(formatBytes(0), '0 B');
  assert.equal(formatBytes(1023), '1023 B');
  assert.equal(formatBytes(117.48666434262113), '117 B');
  assert.equal(formatBytes(512 * 2 ** 20), '512 MiB');
  assert.equal(formatBytes(1.25 * 2 ** 30), '1.25 GiB');
});
