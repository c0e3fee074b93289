/** How commands end before their end: Ctrl-C, SIGTERM, a reader that goes away, a server that dies. */
import assert from 'node:assert/strict';
import { readdirSync, statSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { qanat } from './command-run.ts';
import { Lake, numbersQuery } from './lake.ts';

/** Enough that writing it as text takes longer than sending a signal. */
const ROWS = 1_500_000;
/** Bounded: far less than a scan that ignores the signal and waits for its reader would take. */
const END_MS_MAX = 15_000;

let lake: Lake;
let file: string;

before(async () => {
  lake = await Lake.create();
  file = await lake.write('big.parquet', numbersQuery(ROWS), 'row_group_size 100000');
});
after(() => lake[Symbol.asyncDispose]());

/** Calls `act` as soon as something has been written into the folder's unfinished file. */
function whenWriting(folder: string, act: () => void): void {
  const timer = setInterval(() => {
    const [partial] = readdirSync(folder).filter((name) => name.endsWith('.partial'));
    if (partial === undefined || statSync(`${folder}/${partial}`).size === 0) return;
    clearInterval(timer);
    act();
  }, 2);
}

describe('signals', () => {
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    test(`${signal} while a file is written: ${code}, soon, and no file`, async () => {
      await using target = await Lake.create();
      let sent = 0;
      const result = await qanat(['scan', file, '--format', 'ndjson', '-o', target.path('out.ndjson')], {
        started: (child) =>
          whenWriting(target.folder, () => {
            sent = performance.now();
            child.kill(signal);
          }),
      });
      assert.ok(sent > 0, 'the scan ended before it wrote anything');
      assert.equal(result.code, code);
      assert.ok(performance.now() - sent < END_MS_MAX);
      assert.equal(result.errors, '');
      assert.deepEqual(await readdir(target.folder), []);
    });
  }

  test('Ctrl-C while the reader of a pipe does not read', async () => {
    let sent = 0;
    const result = await qanat(['scan', file, '--format', 'csv'], {
      unread: true,
      started: (child) => {
        // the pipe is full soon after the first bytes
        child.stdout!.once('readable', () =>
          setTimeout(() => {
            sent = performance.now();
            child.kill('SIGINT');
          }, 300),
        );
      },
    });
    assert.equal(result.code, 130);
    assert.ok(performance.now() - sent < END_MS_MAX);
  });

  test('Ctrl-C in the demo: 130, and nothing of it is left', async () => {
    await using temporary = await Lake.create();
    const result = await qanat(['demo', '--rows', '3000000'], {
      env: { TMPDIR: temporary.folder },
      started: (child) => {
        const timer = setInterval(() => {
          if (readdirSync(temporary.folder).length === 0) return;
          clearInterval(timer);
          child.kill('SIGINT');
        }, 10);
      },
    });
    assert.equal(result.code, 130);
    assert.deepEqual(await readdir(temporary.folder), []);
  });
});

describe('a reader that goes away', () => {
  for (const format of ['csv', 'ndjson', 'arrow', 'table']) {
    test(`after the first bytes of ${format}: quietly, with 0`, async () => {
      const limit = format === 'table' ? ['--limit', '200000'] : [];
      const result = await qanat(['scan', file, '--format', format, ...limit], {
        unread: true,
        started: (child) => {
          child.stdout!.once('data', () => child.stdout!.destroy());
        },
      });
      assert.equal(result.errors, '');
      assert.equal(result.code, 0);
    });
  }
});
