/** Logs: what is in a line for people and for programs, and that no secret and no trick of a name gets into either. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { seededRandom } from '../../decode/tests/random.ts';
import { FetchError } from '../../fetcher/index.ts';
import { createLog, type Log } from '../log.ts';
import type { LogFormat, LogLevel } from '../log-names.ts';
import { redact, redactValue } from '../secrets.ts';

function logTo(format: LogFormat, level: LogLevel = 'info'): { log: Log; lines: string[] } {
  const lines: string[] = [];
  return { lines, log: createLog({ command: 'daemon', level, format, write: (line) => lines.push(line) }) };
}

describe('secrets', () => {
  const cases: [text: string, shown: string][] = [
    ['rdma://me:hunter2@host:7400/lake', 'rdma://***@host:7400/lake'],
    ['https://me@host/x', 'https://***@host/x'],
    ['s3://AKIA:SECRET@bucket/key', 's3://***@bucket/key'],
    ['https://user:p@ss@host/x', 'https://***@host/x'],
    ['GET https://h/x.parquet?X-Amz-Signature=abc&X-Amz-Credential=def failed', 'GET https://h/x.parquet?*** failed'],
    ['https://h/x#access_token=abc', 'https://h/x#***'],
    ['https://h?token=a/b', 'https://h?***'],
    ['rdma://h/part-?.parquet', 'rdma://h/part-?.parquet'],
    ['file:///a@b/c?.parquet', 'file:///a@b/c?.parquet'],
    ['listen: "me:hunter2@host:7400"', 'listen: "***@host:7400"'],
    ['me:hunter2@[::1]', '***@[::1]'],
    ['at 12:30 by a@b, 127.0.0.1:7400', 'at 12:30 by a@b, 127.0.0.1:7400'],
    ['Authorization: Bearer eyJhbGciOi.eyJzdWIi.sig', 'Authorization: *** ***'],
    ['Bearer abcdefgh', 'Bearer ***'],
    ['password=hunter2, next', 'password=***, next'],
    [
      'a-very-long-name-of-something-that-holds-a-password: x',
      'a-very-long-name-of-something-that-holds-a-password: ***',
    ],
    ['db_password: "hunter 2" there', 'db_password: "***" there'],
    ['{"secret":"abc","a":1}', '{"secret":"***","a":1}'],
    ['aws_secret_access_key = wJalr', 'aws_secret_access_key = ***'],
    ['x-api-key: k1', 'x-api-key: ***'],
    ['rows=5 bytes=7', 'rows=5 bytes=7'],
    ['two: https://a:b@c/ and rdma://d:e@f/', 'two: https://***@c/ and rdma://***@f/'],
  ];
  for (const [text, shown] of cases) test(text, () => assert.equal(redact(text), shown));

  test('are found in nested fields, under names and in causes of errors', () => {
    const cause = new Error('connect https://a:b@c/?t=1');
    const error = new FetchError('HOST', 'rdma://me:pw@h/', { cause });
    const clean = redactValue({
      source: { location: 'https://u:p@h/x?sig=1', list: ['Bearer abcdefgh'] },
      token: 'abc',
      apiKey: 'def',
      Authorization: { scheme: 'x' },
      columns: ['password'],
      none: null,
      big: 12n,
      err: error,
    }) as Record<string, unknown>;
    const text = JSON.stringify(clean);
    assert.doesNotMatch(text, /u:p|sig=1|abcdefgh|"abc"|"def"|me:pw|a:b|t=1|"x"/);
    assert.deepEqual(clean.columns, ['password']);
    assert.equal(clean.none, null);
    assert.match(text, /fetch HOST: rdma:\/\/\*\*\*@h\//);
  });

  test('what goes round in circles ends', () => {
    const loop: Record<string, unknown> = { name: 'a' };
    loop.self = loop;
    assert.match(JSON.stringify(redactValue(loop)), /…/);
  });

  test('a password in a URL is never shown, whatever stands around it', () => {
    const random = seededRandom();
    const marks = [' ', '"', "'", '<', '(', ',', '=', ': ', '\n', '[', '{"url":"', 'x'];
    for (let run = 0; run < 500; run++) {
      const scheme = ['rdma', 'https', 's3', 'postgres+ssl'][random.below(4)]!;
      const user = 'u'.repeat(random.below(3));
      const before = marks[random.below(marks.length)]!.repeat(random.below(3));
      const after = marks[random.below(marks.length)]!;
      const text = `${before}${scheme}://${user}:Pa55w0rd@host:1/p${after}`;
      assert.doesNotMatch(redact(text), /Pa55w0rd/, JSON.stringify(text));
    }
  });

  test('a long line is no work', () => {
    const bits = [
      'a.',
      'a+',
      'a-token',
      'https://',
      'https://a@',
      '=',
      'token',
      'token=',
      'token="',
      'token ',
      'bearer ',
      ' a:',
      'a:b',
      ' ',
    ];
    for (const bit of bits) {
      const began = process.cpuUsage().user;
      redact(bit.repeat(50_000));
      assert.ok(process.cpuUsage().user - began < 2e6, `quadratic in ${JSON.stringify(bit)}`);
    }
  });
});

describe('lines', () => {
  test('for programs: JSON with level, time, command, message and fields', () => {
    const { log, lines } = logTo('json');
    log.info({ source: 'lake', location: 'https://a:b@c/?d' }, 'opened https://a:b@c/?d');
    const entry = JSON.parse(lines[0]!);
    assert.ok(lines[0]!.endsWith('\n'));
    assert.match(entry.time, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    const { time: _, ...rest } = entry;
    assert.deepEqual(rest, {
      level: 'info',
      command: 'daemon',
      source: 'lake',
      location: 'https://***@c/?***',
      msg: 'opened https://***@c/?***',
    });
  });

  test('for people: time, who, what, fields; errors by their message', () => {
    const { log, lines } = logTo('human');
    log.info({ source: 'lake', path: 'a b', list: [1, 2] }, 'opened');
    log.warn({ err: new FetchError('LOST', 'gone') }, 'trying again');
    log.error(new Error('by itself'));
    assert.match(lines[0]!, /^\S+Z qanat daemon: opened {2}source=lake {2}path="a b" {2}list=\[1,2\]\n$/);
    assert.match(lines[1]!, /^\S+Z qanat daemon: warn: trying again {2}err=fetch LOST: gone\n$/);
    assert.match(lines[2]!, /^\S+Z qanat daemon: error: by itself {2}err=by itself\n$/);
  });

  test('names can not talk to the terminal or begin a line', () => {
    for (const format of ['human', 'json'] as const) {
      const { log, lines } = logTo(format);
      log.info({ path: 'a\x1b[2J\nb' }, 'evil\x1b]0;x\x07\nname');
      assert.equal(lines.length, 1);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what must not be there
      assert.doesNotMatch(lines[0]!.slice(0, -1), /[\x00-\x1f]/);
    }
  });

  test('below the level there are none; the level can change', () => {
    const { log, lines } = logTo('json', 'warn');
    log.info('no');
    log.warn('yes');
    log.level = 'debug';
    log.debug('now');
    assert.deepEqual(
      lines.map((line) => JSON.parse(line).msg),
      ['yes', 'now'],
    );
  });
});
