/** `qanat pack`, locations that lead into packed files, `serve` of them and with --pin: as people use them. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawnSync } from 'node:child_process';
import { readdirSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { cp, mkdir, readdir, readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { QANAT, qanat, qanatServe } from './command-run.ts';
import { Lake, numbersQuery } from './lake.ts';
import { until } from './mount-rig.ts';

let lake: Lake;
let packed: string;

before(async () => {
  lake = await Lake.create();
  await mkdir(lake.path('in/deep'), { recursive: true });
  await lake.write('in/a.parquet', numbersQuery(20_000));
  await lake.write('in/deep/b[1].parquet', numbersQuery(5000));
  writeFileSync(lake.path('in/notes.txt'), 'not Parquet');
  packed = lake.path('lake.qanat');
});
after(() => lake[Symbol.asyncDispose]());

const lines = (text: string): string[] => text.trimEnd().split('\n');

test('packed, listed, inspected, scanned and copied as the files themselves', async () => {
  const made = await qanat(['pack', lake.path('in'), '-o', packed, '--json']);
  assert.equal(made.code, 0, made.errors);
  const told = JSON.parse(made.text);
  assert.deepEqual([told.file, told.files, told.bytes], [packed, 2, statSync(packed).size]);
  assert.deepEqual(told.skipped, [{ path: 'notes.txt', reason: 'it is not named as Parquet' }]);
  assert.match(made.errors, /skipped: notes\.txt/);

  const server = await qanatServe([packed]);
  try {
    const { rdma } = server.ready;
    for (const [location, lead] of [
      [packed, `${packed}!/`],
      [`rdma://${rdma}`, ''],
    ] as const) {
      assert.deepEqual(
        lines((await qanat(['ls', location])).text).map((line) => line.split('  ').at(-1)),
        [`${lead}a.parquet`, `${lead}deep/b[1].parquet`],
      );
    }
    const checksum = async (location: string) => {
      const { code, text, errors } = await qanat(['scan', location, '--format', 'checksum']);
      assert.equal(code, 0, errors);
      return text;
    };
    const all = await checksum(lake.path('in'));
    assert.equal(await checksum(`${packed}!/**/*.parquet`), all);
    assert.equal(await checksum(`rdma://${rdma}/`), all);
    const one = await checksum(lake.path('in/deep/b[1].parquet'));
    assert.equal(await checksum(`${packed}!/deep/b[1].parquet`), one);
    assert.equal(await checksum(`file://${packed}!/deep/b%5B1%5D.parquet`), one);
  } finally {
    assert.equal((await server.stop()).code, 0);
  }

  const inspected = await qanat(['inspect', `${packed}!/a.parquet`]);
  assert.match(inspected.text, /lake\.qanat!\/a\.parquet/);
  await qanat(['cp', `${packed}!/a.parquet`, lake.path('copy.parquet')]);
  assert.deepEqual(await readFile(lake.path('copy.parquet')), await readFile(lake.path('in/a.parquet')));
  const relative = await qanat(['ls', 'lake.qanat!/deep', '--json'], { cwd: lake.folder });
  assert.equal(JSON.parse(relative.text)[0].location, `${packed}!/deep/b[1].parquet`);
});

test('other files, of which people are told', async () => {
  const all = lake.path('all.qanat');
  assert.equal((await qanat(['pack', lake.path('in'), '--all', '-o', all])).code, 0);
  const { text, errors } = await qanat(['ls', all]);
  assert.equal(lines(text).length, 2);
  assert.ok(errors.includes(`1 file more, not named as Parquet: qanat ls '${all}!/**' lists all`), errors);
  assert.equal(lines((await qanat(['ls', `${all}!/**`])).text).length, 3);
});

test('what makes no sense', async () => {
  const folder = lake.path('in');
  await mkdir(lake.path('folder.qanat'));
  await cp(lake.path('in/a.parquet'), lake.path('folder.qanat/a.parquet'));
  writeFileSync(lake.path('broken.qanat'), 'this is no packed file');
  for (const [args, code, reason] of [
    [['pack', folder], 2, /-o lake\.qanat/],
    [['pack', folder, '-o', lake.path('lake.bin')], 2, /ends in \.qanat/],
    [['pack', folder, '-o', lake.path('x.qanat'), '--align', '100'], 2, /power of two/],
    [['ls', lake.path('none.qanat!/a')], 1, /there is no packed file .*none\.qanat/],
    [['ls', lake.path('broken.qanat')], 1, /broken\.qanat: no packed region, or a damaged one, at byte 0/],
    [['serve', lake.path('broken.qanat')], 1, /broken\.qanat: no packed region, or a damaged one, at byte 0/],
    [['cp', `${packed}!/a.parquet`, packed], 2, /the same file/],
  ] as const) {
    const result = await qanat(args);
    assert.equal(result.code, code, `${args.join(' ')}: ${result.errors}`);
    assert.match(result.errors, reason);
    assert.equal(lines(result.errors).length, 1, result.errors);
  }
  assert.equal((await qanat(['ls', lake.path('folder.qanat')])).code, 0, 'a folder is a folder, whatever its name');
});

describe('a packing that is ended', () => {
  let folder: string;
  before(async () => {
    folder = lake.path('large');
    await mkdir(folder);
    writeFileSync(`${folder}/a.parquet`, '');
    // sparse; so much that it is not packed before a signal comes, however busy the machine is
    truncateSync(`${folder}/a.parquet`, 8_000_000_000);
  });

  /** Calls `act` as soon as something has been written into the unfinished file. */
  const whenWriting = (target: Lake, act: () => void): void => {
    const timer = setInterval(() => {
      const [partial] = readdirSync(target.folder).filter((name) => name.endsWith('.partial'));
      if (partial === undefined || statSync(target.path(partial)).size === 0) return;
      clearInterval(timer);
      act();
    }, 2);
  };

  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    test(`by ${signal}: ${code}, and nothing is left`, async () => {
      await using target = await Lake.create();
      const started = (child: ChildProcess): void => whenWriting(target, () => child.kill(signal));
      const result = await qanat(['pack', folder, '-o', target.path('lake.qanat')], { started });
      assert.equal(result.code, code, result.errors);
      assert.equal(result.errors, '');
      assert.deepEqual(await readdir(target.folder), []);
    });
  }

  test('by a file system that has no room: an error, and nothing is left', async () => {
    await using target = await Lake.create();
    const output = target.path('lake.qanat');
    const script = `ulimit -f 20000; exec '${process.execPath}' '${QANAT}' pack '${folder}' -o '${output}'`;
    const { status, stderr } = spawnSync('sh', ['-c', script], { encoding: 'utf8' });
    assert.equal(status, 1, stderr);
    assert.match(stderr, /can't write .*lake\.qanat: the file system has no room for a file of that size\n$/);
    assert.deepEqual(await readdir(target.folder), []);
  });

  test('by a crash: the next one removes what it left, and says so', async () => {
    await using target = await Lake.create();
    const started = (child: ChildProcess): void => whenWriting(target, () => child.kill('SIGKILL'));
    const output = target.path('lake.qanat');
    const crashed = await qanat(['pack', folder, '-o', output], { started });
    assert.equal(crashed.signal, 'SIGKILL');
    const [left] = await readdir(target.folder);
    assert.match(left!, /^\.lake\.qanat\..*\.partial$/);
    const next = await qanat(['pack', lake.path('in'), '-o', output]);
    assert.equal(next.code, 0);
    assert.ok(next.errors.includes(`removed ${left}, left by a run that crashed`), next.errors);
    assert.deepEqual(await readdir(target.folder), ['lake.qanat']);
  });
});

describe('serve --pin', () => {
  test('in front of a folder, with and without a budget: the same values, and a word about memory', async () => {
    const bytes = ['in/a.parquet', 'in/deep/b[1].parquet'].map((name) => statSync(lake.path(name)).size);
    const expected = (await qanat(['scan', lake.path('in'), '--format', 'checksum'])).text;
    for (const args of [
      ['--pin', lake.path('in')],
      ['--pin', String(bytes[0]! + bytes[1]!), lake.path('in')],
    ]) {
      const server = await qanatServe(args);
      try {
        await until(() => /pinned [\d.]+ KiB of a budget of /.test(server.errors()), 'a word about memory');
        const { text } = await qanat(['scan', `rdma://${server.ready.rdma}`, '--format', 'checksum']);
        assert.equal(text, expected);
      } finally {
        assert.equal((await server.stop()).code, 0);
      }
    }
  });

  test('what does not fit is refused with what it needs', async () => {
    for (const [args, env] of [
      [['--pin', '1KiB'], {}],
      [[], { QANAT_PIN: '1KiB' }],
    ] as const) {
      const { code, errors } = await qanat(['serve', lake.path('in'), ...args], { env });
      assert.equal(code, 1);
      assert.match(
        errors,
        /to pin 2 files needs .* MiB \(\d+ bytes\) of memory, the budget is 0\.0 MiB \(1024 bytes\): /,
      );
    }
    const nonsense = await qanat(['serve', lake.path('in'), '--pin=much']);
    assert.deepEqual([nonsense.code, /"much" is no size/.test(nonsense.errors)], [2, true]);
  });
});
