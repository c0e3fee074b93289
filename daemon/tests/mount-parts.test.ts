/** Parts of a mount by themselves: what is mounted and when that changes, the prefetch depth, errors between threads. */
import assert from 'node:assert/strict';
import { describe, mock, test } from 'node:test';
import { DecodeError } from '../../decode/index.ts';
import { FetchError, type FileVersion, type OpenedTransport, type Transport } from '../../fetcher/index.ts';
import { newTransportCounters } from '../../fetcher/transport/transport.ts';
import { MountError, openSource } from '../../vfs/index.ts';
import { CommandError } from '../errors.ts';
import { isExpected } from '../exit-codes.ts';
import { DEPTH_LOOK_MS } from '../mount/limits.ts';
import { postError, revivedError } from '../mount/posted-error.ts';
import { PrefetchDepth, type ReadTotals } from '../mount/prefetch-depth.ts';
import { SourceTree, tellingOfChanges } from '../mount/source-tree.ts';

/** A source whose files the test changes. */
class Files implements Transport {
  readonly etags = new Map<string, string>();
  failure: FetchError | undefined;
  looks = 0;

  async list(prefix: string): Promise<FileVersion[]> {
    this.looks++;
    if (this.failure !== undefined) throw this.failure;
    return [...this.etags]
      .filter(([path]) => path.startsWith(prefix))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([path, etag]) => ({ path, length: 10, etag, modifiedMs: 0 }));
  }

  async read(): Promise<void> {
    if (this.failure !== undefined) throw this.failure;
  }

  async close(): Promise<void> {}
}

async function treeOf(files: Files, text = 'rdma://h'): Promise<SourceTree> {
  const counters = newTransportCounters();
  const opened: OpenedTransport = { transport: files, path: '', counters };
  return new SourceTree(await openSource(text, {}, async () => opened), 'decoded');
}

/** What a tree says when it is followed. */
function follow(tree: SourceTree, lookMs = 1) {
  const said: string[] = [];
  const waiting: (() => void)[] = [];
  const say = (what: string): void => {
    said.push(what);
    for (const resolve of waiting.splice(0)) resolve();
  };
  tree.follow(lookMs, {
    changed: ({ files }) => {
      say(files.map(({ path }) => path).join(' '));
      if (files.some(({ path }) => path === 'bad')) throw new MountError('TREE', 'bad');
    },
    failed: (error) => say(`failed ${error.message}`),
    recovered: () => say('recovered'),
  });
  return {
    said,
    async until(count: number): Promise<void> {
      while (said.length < count) await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}

describe('what is mounted', () => {
  test('follows the source, and stays when that can not be listed', async () => {
    const files = new Files();
    files.etags.set('a.parquet', '1').set('b.txt', '1');
    const tree = await treeOf(files);
    const first = await tree.begin();
    assert.deepEqual(
      first.files.map(({ path, length, attributes }) => [path, length, attributes!['user.qanat.view']]),
      [
        ['a.parquet', undefined, 'decoded'],
        ['b.txt', 10, 'raw'],
      ],
    );
    assert.equal(tree.versionOf(first.files[0]!).path, 'a.parquet');
    const { said, until } = follow(tree);
    files.etags.set('c', '1');
    await until(1);
    files.failure = new FetchError('LOST', 'away');
    await until(2);
    const { looks } = files;
    while (files.looks < looks + 2) await new Promise((resolve) => setTimeout(resolve, 10));
    files.failure = undefined;
    await until(3);
    files.etags.clear();
    await until(4);
    files.etags.set('bad', '1');
    await until(7);
    files.etags.delete('bad');
    files.etags.set('good', '1');
    while (said.at(-1) !== 'recovered') await until(said.length + 1);
    tree.close();
    assert.deepEqual(said.slice(0, 6), [
      'a.parquet b.txt c',
      'failed fetch LOST: away',
      'recovered',
      '',
      'bad',
      'failed mount TREE: bad',
    ]);
    assert.deepEqual(new Set(said.slice(6, -2)), new Set(['bad']), 'tried again, and told once');
    assert.deepEqual(said.slice(-2), ['good', 'recovered']);
    assert.equal(tree.generations, 3);
  });

  test('is looked at soon when a read finds that its file has changed', async () => {
    const files = new Files();
    files.etags.set('a', '1');
    const tree = await treeOf(files);
    await tree.begin();
    const { said, until } = follow(tree, 3_600_000);
    const telling = tellingOfChanges(files, () => tree.look());
    files.etags.set('a', '2');
    files.failure = new FetchError('LOST', 'not about the file');
    await assert.rejects(telling.read({ path: 'a', length: 10, etag: '1', modifiedMs: 0 }, 0, new Uint8Array(1)));
    files.failure = new FetchError('STALE', 'changed');
    await assert.rejects(telling.read({ path: 'a', length: 10, etag: '1', modifiedMs: 0 }, 0, new Uint8Array(1)));
    files.failure = undefined;
    await until(1);
    tree.close();
    assert.deepEqual(said, ['a']);
  });

  test('is nothing of our own mount', async () => {
    const files = new Files();
    // as file-version.ts makes them: size, times, inode and device
    files.etags.set('tmp/x/a', `1-2-3-4-${(39n).toString(36)}`).set('tmp/x/b', `1-2-3-5-${(40n).toString(36)}`);
    const tree = await treeOf(files, 'file:///');
    tree.ownDevice = 39n;
    assert.deepEqual(
      (await tree.begin()).files.map(({ path }) => path),
      ['tmp/x/b'],
    );
  });

  test('without files there is nothing to begin with', async () => {
    const tree = await treeOf(new Files());
    await assert.rejects(tree.begin(), (error) => error instanceof FetchError && error.code === 'NOT_FOUND');
  });
});

describe('prefetch depth', () => {
  test('stays as it was given, or follows what reads find', () => {
    mock.timers.enable({ apis: ['setInterval'] });
    try {
      let totals: ReadTotals = { there: 0, waited: 0, evictedBytes: 0, memoryShare: 0.1 };
      const changes: number[] = [];
      const fixed = new PrefetchDepth(
        5,
        () => totals,
        (depth) => void changes.push(depth),
      );
      const auto = new PrefetchDepth(
        'auto',
        () => totals,
        (depth) => void changes.push(depth),
      );
      const look = (more: Partial<ReadTotals>): void => {
        totals = { ...totals, ...more };
        mock.timers.tick(DEPTH_LOOK_MS);
      };
      look({ there: 2, waited: 2 }); // too few to say
      look({ there: 10, waited: 10 });
      look({ there: 20, waited: 20 });
      look({ there: 100 });
      look({ there: 110, waited: 40, memoryShare: 0.9 });
      look({ there: 200, evictedBytes: 1, memoryShare: 0.9 });
      assert.deepEqual(changes, [3, 4, 3]);
      assert.deepEqual([fixed.current, auto.current], [5, 3]);
      auto.close();
      look({ there: 300, waited: 900, memoryShare: 0.1 });
      assert.equal(auto.current, 3);
    } finally {
      mock.timers.reset();
    }
  });
});

test('errors keep class, code and words between threads', () => {
  const errors = [
    new MountError('BUSY', 'in use'),
    new FetchError('LOST', 'away'),
    new CommandError('USAGE', 'no sense', { details: ['a', 'b'] }),
    new DecodeError('METADATA', 'broken'),
  ];
  for (const error of errors) {
    const revived = revivedError(structuredClone(postError(error)));
    assert.equal(revived.constructor, error.constructor);
    assert.equal(revived.message, error.message);
    assert.equal((revived as { code?: string }).code, error.code);
    assert.deepEqual((revived as { details?: unknown }).details, (error as { details?: unknown }).details);
    assert.ok(isExpected(revived));
  }
  for (const other of [new TypeError('a bug'), 'a text', undefined, { code: 'EIO' }]) {
    const revived = revivedError(structuredClone(postError(other)));
    assert.equal(isExpected(revived), false);
    assert.ok(revived.message.length > 0);
  }
});
