/** How commands end before their end: Ctrl-C, SIGTERM, a reader that goes away, a server that dies. */
import assert from 'node:assert/strict';
import { linkSync, readdirSync, statSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { qanat } from './command-run.ts';
import { Lake, numbersQuery } from './lake.ts';

const ROWS = 300_000;
/** The same file by so many names: writing all as text takes much longer than sending a signal, on a busy machine too. */
const NAMES = 40;
/** Bounded: far less than a scan that ignores the signal and waits for its reader would take. */
const END_MS_MAX = 15_000;

let lake: Lake;

before(async () => {
  lake = await Lake.create();
  const file = await lake.write('0.parquet', numbersQuery(ROWS), 'row_group_size 100000');
  for (let k = 1; k < NAMES; k++) linkSync(file, lake.path(`${k}.parquet`));
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
      const result = await qanat(['scan', lake.folder, '--format', 'ndjson', '-o', target.path('out.ndjson')], {
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
    const result = await qanat(['scan', lake.folder, '--format', 'csv'], {
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
    const result = await qanat(['demo', '--rows', '1000000'], {
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
      const result = await qanat(['scan', lake.folder, '--format', format, ...limit], {
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
