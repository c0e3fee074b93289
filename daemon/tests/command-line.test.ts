/** The command line: help, mistakes and how they are told, variables, and the README that is made from the same tables. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { COMMANDS } from '../command-table.ts';
import { EXIT_CODE_MEANINGS } from '../exit-codes.ts';
import { OPTIONS, type OptionName } from '../options.ts';
import { README, withTables } from '../readme-tables.ts';
import { qanat } from './command-run.ts';
import { Lake, numbersQuery } from './lake.ts';

describe('qanat --version', () => {
  test('is the one of the package', async () => {
    const { text, code } = await qanat(['--version']);
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    assert.equal(text.trim(), version);
    assert.equal(code, 0);
  });
});

describe('README', () => {
  test('its tables are those of the code: run `node daemon/readme-tables.ts` when this fails', () => {
    const readme = readFileSync(README, 'utf8');
    assert.equal(withTables(readme), readme);
  });

  test('every option has a command, every exit code a meaning', () => {
    const used = new Set<OptionName>(Object.values(COMMANDS).flatMap(({ options }) => options));
    assert.deepEqual(
      Object.keys(OPTIONS).filter((name) => !used.has(name as OptionName)),
      [],
    );
    assert.deepEqual(
      EXIT_CODE_MEANINGS.map(([code]) => code),
      [0, 1, 2, 130, 143],
    );
  });
});

describe('mistakes', () => {
  const cases: [what: string, args: string[], says: RegExp][] = [
    ['an unknown command', ['scna', 'x'], /unknown command 'scna'[\s\S]*Did you mean scan/],
    ['an unknown option', ['scan', 'x', '--colums', 'a'], /unknown option '--colums'[\s\S]*Did you mean --columns/],
    ['no command', [], /Usage: qanat/],
    ['no location', ['scan'], /missing required argument 'url'/],
    ['too many locations', ['ls', 'a', 'b'], /too many arguments/],
    ['a size that is none', ['scan', 'x', '--memory', 'lots'], /--memory[\s\S]*"lots" is no size/],
    ['too little memory', ['scan', 'x', '--memory', '1KiB'], /at least/],
    ['a format that is none', ['scan', 'x', '--format', 'xml'], /expected one of arrow, csv/],
    ['a scheme that is none', ['ls', 'gopher://x'], /gopher:\/\/, which is not supported/],
    ['an odd alignment', ['serve', '.', '--align', '100'], /expected a power of two/],
    ['checksums out of order', ['scan', 'x', '--format', 'checksum', '--no-preserve-order'], /exclude each other/],
    ['JSON and CSV on one output', ['scan', 'x', '--format', 'csv', '--json'], /both want standard output/],
    [
      'a file of an unknown kind',
      ['scan', 'x', '-o', 'x.csv.gz'],
      /no format for \.gz: name one with --format, .*\.csv/,
    ],
    ['a file of no kind', ['scan', 'x', '-o', '/tmp/out'], /no format for out, which has no ending: name one/],
    [
      'a port that is none',
      ['serve', '.', '--listen', 'localhost:99999'],
      /ports are 1 to 65535, and 0 takes a free one/,
    ],
    [
      'a copy to a server',
      ['cp', 'x', 'rdma://h/new.parquet'],
      /rdma:\/\/h\/new\.parquet: a destination is a local file/,
    ],
    [
      'an address others reach',
      ['serve', '.', '--listen', '0.0.0.0:0'],
      /--tokens or --tls-client-ca[\s\S]*--insecure-listen/,
    ],
  ];
  for (const [what, args, says] of cases) {
    test(`${what} is told and ends with 2`, async () => {
      const { code, text, errors } = await qanat(args);
      assert.match(errors, says);
      assert.equal(text, '');
      assert.equal(code, 2);
      if (args.length > 0) assert.match(errors, /^qanat[^\n]*\n$/);
    });
  }

  test('what the parser refuses is a line that names the command and its help', async () => {
    const option = await qanat(['scan', 'x', '--colums', 'a']);
    const help = "qanat scan: unknown option '--colums' (Did you mean --columns?); see qanat scan --help\n";
    assert.equal(option.errors, help);
    assert.match((await qanat(['scna'])).errors, /^qanat: unknown command .*; see qanat --help\n$/);
  });

  test('what is not there is one line and 1; --debug adds where', async () => {
    await using lake = await Lake.create();
    const plain = await qanat(['scan', lake.path('nothing.parquet')]);
    assert.equal(plain.code, 1);
    assert.match(plain.errors, /^qanat scan: fetch NOT_FOUND: .*\n$/);
    const debug = await qanat(['scan', lake.path('nothing.parquet')], { env: { QANAT_DEBUG: '1' } });
    assert.match(debug.errors, /\n +at /);
    const closed = await qanat(['ls', 'rdma://127.0.0.1:1/'], { env: { QANAT_STALL_TIMEOUT: '1s' } });
    assert.equal(closed.code, 1);
    assert.match(closed.errors, /^qanat ls: fetch [A-Z]+: .*127\.0\.0\.1:1.*\n$/);
  });

  test('names from outside can not talk to the terminal', async () => {
    const { code, errors } = await qanat(['scan', '/nowhere/\x1b[2J\x07\nbad.parquet']);
    assert.equal(code, 1);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what must not be there
    assert.doesNotMatch(errors.trimEnd(), /[\x00-\x1f]/);
  });
});

describe('variables', () => {
  test('set options; the command line wins; mistakes name the variable', async () => {
    await using lake = await Lake.create();
    const file = await lake.write('n.parquet', numbersQuery(100));
    const env = { QANAT_LIMIT: '3', QANAT_COLUMNS: 'id', QANAT_FORMAT: 'csv', QANAT_STATS: 'false', QANAT_JSON: '' };
    const set = await qanat(['scan', file], { env });
    assert.equal(set.text, 'id\n0\n1\n2\n');
    assert.equal(set.errors, '');
    const won = await qanat(['scan', file, '--limit', '1'], { env });
    assert.equal(won.text, 'id\n0\n');
    const wrong = await qanat(['scan', file], { env: { QANAT_MEMORY: 'lots' } });
    assert.equal(wrong.code, 2);
    assert.match(wrong.errors, /QANAT_MEMORY: "lots" is no size/);
  });
});

describe('an older Node', () => {
  const system = ['/usr/bin/node', '/usr/local/bin/node'].find((path) => existsSync(path));
  const version = system === undefined ? '' : execFileSync(system, ['--version'], { encoding: 'utf8' }).trim();
  const old = /^v(1[89]|2[0-3])\./.test(version);
  test('hands over to the one that was installed with the project', {
    skip: old ? false : 'no older Node here',
  }, async () => {
    const { code, text, errors } = await qanat(['--version'], { node: system! });
    assert.equal(errors, '');
    assert.equal(code, 0);
    assert.match(text, /^\d+\.\d+\.\d+\n$/);
    const failing = await qanat(['scan', '/nowhere.parquet'], { node: system! });
    assert.equal(failing.code, 1);
    const told = await qanat(['--version'], { node: system!, env: { QANAT_NODE_TRIED: '1' } });
    assert.equal(told.code, 2);
    assert.match(told.errors, /needs Node\.js 24\.3 or newer, this is \d+/);
  });
});
