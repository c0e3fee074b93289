/** Publishing while clients are connected, over raw sockets: what is answered, what is refused, who is told. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readlinkSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Directory, decodeGenerationEvent, EVENT, FRAME_KIND, WC } from '../protocol/index.ts';
import { fetchDirectory, makeFolder, pattern, startServer } from './lake.ts';
import { type Frame, RawClient, readFrame } from './raw-client.ts';

const FILES = { 'a.parquet': pattern(3_000_000, 1), 'b.parquet': pattern(500_000, 2) };

/** Puts another file in the place of one, as a writer should: by renaming. */
function replace(folder: string, path: string, bytes: Uint8Array): void {
  writeFileSync(join(folder, `${path}.new`), bytes);
  renameSync(join(folder, `${path}.new`), join(folder, path));
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

function addressOf(directory: Directory, path: string): number {
  const entry = directory.entries.find((one) => one.path === path);
  assert.ok(entry !== undefined, path);
  return directory.dataStart + entry.offset;
}

/** All frames until the connection ends. */
async function framesOf(client: RawClient): Promise<Frame[]> {
  const frames: Frame[] = [];
  for (let frame = await client.frame(); frame !== undefined; frame = await client.frame()) frames.push(frame);
  return frames;
}

test('nothing new, nothing published; something new, and everybody is told', async (t) => {
  const folder = makeFolder(t, FILES);
  const { server, port } = await startServer(t, folder);
  const first = server.region();
  const client = await RawClient.greeted(port);
  const checking = await RawClient.greeted(port, { checksum: true });
  assert.equal(await server.republish(), 'unchanged');
  assert.equal(server.region().generation, first.generation);
  assert.equal(server.counters().generations, 1);

  replace(folder, 'b.parquet', pattern(400_000, 3));
  writeFileSync(join(folder, 'c.parquet'), pattern(10, 4));
  const beforeMs = Date.now();
  assert.equal(await server.republish(), 'published');
  const second = server.region();
  assert.notEqual(second.generation, first.generation);
  assert.equal(second.files, 3);
  assert.equal(server.counters().generations, 2);
  assert.ok(server.counters().publishedMs >= beforeMs);

  for (const told of [client, checking]) {
    const frame = (await told.frame())!;
    assert.deepEqual([frame.kind, frame.status, frame.wrId], [FRAME_KIND.EVENT, EVENT.GENERATION, 0]);
    const served = decodeGenerationEvent(frame.payload);
    assert.equal(hex(served.generation), second.generation);
    assert.equal(served.regionLength, second.regionBytes);
    assert.notEqual(served.rkey, told.welcome.rkey);
    const directory = await fetchDirectory(Object.assign(told, { welcome: { ...told.welcome, ...served } }));
    const address = addressOf(directory, 'b.parquet');
    told.socket.write(readFrame({ wrId: 7, rkey: served.rkey, address, length: 400_000 }));
    assert.ok(pattern(400_000, 3).equals((await told.answer())!.bytes));
    told.socket.destroy();
  }
  const late = await RawClient.greeted(port);
  assert.equal(hex(late.welcome.generation), second.generation);
  late.socket.destroy();
});

test('a replaced rkey is refused as stale, one that never was is not; no length asks for no key', async (t) => {
  const folder = makeFolder(t, FILES);
  const { server, port } = await startServer(t, folder);
  const late = await RawClient.greeted(port);
  const guessing = await RawClient.greeted(port);
  for (let n = 0; n < 3; n++) {
    replace(folder, 'b.parquet', pattern(1000 + n, n));
    assert.equal(await server.republish(), 'published');
  }
  const { rkey } = late.welcome;
  late.socket.write(
    Buffer.concat([
      readFrame({ wrId: 1, rkey, address: 0, length: 0 }),
      readFrame({ wrId: 2, rkey, address: 0, length: 8 }),
      readFrame({ wrId: 3, rkey, address: 0, length: 8 }),
    ]),
  );
  const frames = (await framesOf(late)).filter(({ kind }) => kind === FRAME_KIND.PAYLOAD);
  assert.deepEqual(
    frames.map(({ wrId, status, stale }) => [wrId, status, stale]),
    [
      [1, WC.SUCCESS, false],
      [2, WC.REM_ACCESS_ERR, true],
    ],
  );
  assert.equal(server.counters().staleRefusals, 1);
  guessing.socket.write(readFrame({ wrId: 1, rkey: 0, address: 0, length: 8 }));
  const refused = (await framesOf(guessing)).at(-1)!;
  assert.deepEqual([refused.status, refused.stale], [WC.REM_ACCESS_ERR, false]);
  assert.equal(server.counters().staleRefusals, 1);
});

for (const pin of [undefined, { budgetBytes: 64 << 20 }]) {
  test(`READs that have begun are of the old generation, those that have not are refused${pin === undefined ? '' : ', pinned'}`, async (t) => {
    const folder = makeFolder(t, { 'a.parquet': pattern(8_000_000, 1), 'b.parquet': pattern(1000, 2) });
    const { server, port } = await startServer(t, folder, pin === undefined ? {} : { pin });
    const client = await RawClient.greeted(port);
    const directory = await fetchDirectory(client);
    const address = addressOf(directory, 'a.parquet');
    client.socket.pause();
    const { rkey } = client.welcome;
    for (let wrId = 10; wrId < 26; wrId++) {
      client.socket.write(readFrame({ wrId, rkey, address, length: 8_000_000 }));
    }
    // More than sockets take and than the server has in memory for one peer.
    while (server.counters().bytesSent < 2 << 20) await sleep(5);
    for (let sent = -1; sent !== server.counters().bytesSent; await sleep(50)) sent = server.counters().bytesSent;
    replace(folder, 'a.parquet', pattern(8_000_000, 3));
    assert.equal(await server.republish(), 'published');
    assert.equal(server.counters().staleRefusals, 1);
    client.socket.write(readFrame({ wrId: 99, rkey, address, length: 8 }));
    client.socket.resume();
    const frames = await framesOf(client);
    const expected = pattern(8_000_000, 1);
    for (const { kind, status, offset, payload } of frames) {
      if (kind !== FRAME_KIND.PAYLOAD || status !== WC.SUCCESS) continue;
      assert.ok(expected.subarray(offset, offset + payload.byteLength).equals(payload));
    }
    const events = frames.filter(({ kind }) => kind === FRAME_KIND.EVENT);
    assert.equal(events.length, 1);
    const end = frames.at(-1)!;
    const completed = frames.filter(({ status, last }) => last && status === WC.SUCCESS).length;
    assert.deepEqual([end.last, end.status, end.stale, end.wrId], [true, WC.REM_ACCESS_ERR, true, 10 + completed]);
    assert.ok(completed < 16);
  });
}

test('a file that has changed and is not published yet is a stale error', async (t) => {
  const folder = makeFolder(t, FILES);
  const { port } = await startServer(t, folder);
  const client = await RawClient.greeted(port);
  const address = addressOf(await fetchDirectory(client), 'b.parquet');
  replace(folder, 'b.parquet', pattern(500_000, 9));
  client.socket.write(readFrame({ wrId: 5, rkey: client.welcome.rkey, address, length: 1000 }));
  const end = (await framesOf(client)).at(-1)!;
  assert.deepEqual([end.status, end.stale], [WC.REM_OP_ERR, true]);
  assert.match(end.payload.toString(), /^b\.parquet: the file has changed since it was published: a SIGHUP/);
});

test('a peer that does not read hears of the last of many generations only', async (t) => {
  const folder = makeFolder(t, { 'a.parquet': pattern(8_000_000, 1), 'b.parquet': pattern(10, 0) });
  const { server, port } = await startServer(t, folder, { limits: { burstsMax: 64 } });
  const client = await RawClient.greeted(port);
  const address = addressOf(await fetchDirectory(client), 'a.parquet');
  client.socket.pause();
  for (let wrId = 10; wrId < 14; wrId++) {
    client.socket.write(readFrame({ wrId, rkey: client.welcome.rkey, address, length: 8_000_000 }));
  }
  while (server.counters().bytesSent < 32_000_000) await sleep(5);
  for (let n = 1; n <= 20; n++) {
    replace(folder, 'b.parquet', pattern(10 + n, n));
    assert.equal(await server.republish(), 'published');
  }
  client.socket.resume();
  const events: string[] = [];
  let completed = 0;
  while (events.at(-1) !== server.region().generation) {
    const frame = (await client.frame())!;
    if (frame.kind === FRAME_KIND.EVENT) events.push(hex(decodeGenerationEvent(frame.payload).generation));
    else if (frame.last) completed++;
  }
  assert.equal(completed, 4);
  assert.ok(events.length <= 2, `${events.length} events`);
  client.socket.destroy();
});

test('whoever shakes hands while generations are published ends up with the last one', async (t) => {
  const folder = makeFolder(t, { 'b.parquet': pattern(10, 0) });
  const { server, port } = await startServer(t, folder);
  let over = false;
  const publishing = (async () => {
    for (let n = 1; n <= 30; n++) {
      replace(folder, 'b.parquet', pattern(10 + n, n));
      assert.equal(await server.republish(), 'published');
    }
    over = true;
  })();
  const known = async (): Promise<void> => {
    const client = await RawClient.greeted(port);
    let generation = hex(client.welcome.generation);
    while (!over || generation !== server.region().generation) {
      generation = hex(decodeGenerationEvent((await client.frame())!.payload).generation);
    }
    client.socket.destroy();
  };
  const clients: Promise<void>[] = [];
  while (!over) {
    clients.push(known());
    await sleep(1);
  }
  await Promise.all([publishing, ...clients]);
  assert.equal(server.counters().generations, 31);
});

test('many calls at once are two looks at most, and the last one sees what was there before it', async (t) => {
  const folder = makeFolder(t, FILES);
  const { server } = await startServer(t, folder);
  const outcomes = [];
  for (let n = 0; n < 50; n++) {
    if (n % 10 === 0) await sleep(1);
    replace(folder, 'b.parquet', pattern(10 + n, n));
    outcomes.push(server.republish());
  }
  await Promise.all(outcomes);
  assert.ok(server.counters().generations <= 12, `${server.counters().generations} generations`);
  assert.equal(server.region().fileBytes, 3_000_000 + 59);
  assert.equal(await server.republish(), 'unchanged');
});

test('what can not be published leaves what is served, and is logged', async (t) => {
  const folder = makeFolder(t, FILES);
  const { server, port, events } = await startServer(t, folder);
  const { generation } = server.region();
  renameSync(folder, `${folder}.away`);
  t.after(() => rmSync(`${folder}.away`, { recursive: true, force: true }));
  assert.equal(await server.republish(), 'failed');
  assert.match(events.at(-1)!, /^not published: .* does not exist; what was served before is still served$/);
  assert.equal(server.counters().publishFailures, 1);
  const client = await RawClient.greeted(port);
  assert.equal(hex(client.welcome.generation), generation);
  assert.equal((await fetchDirectory(client)).entries.length, 2);
  client.socket.destroy();
  renameSync(`${folder}.away`, folder);
  assert.equal(await server.republish(), 'unchanged');
  for (const path of Object.keys(FILES)) rmSync(join(folder, path));
  assert.equal(await server.republish(), 'published');
  assert.equal(server.region().files, 0);
  assert.match(events.at(-1)!, /^warning: there is no file to serve any more$/);
});

test('descriptors of files that are not served any more are closed', {
  skip: process.platform === 'linux' ? false : 'needs /proc',
}, async (t) => {
  const folder = makeFolder(t, FILES);
  const { server, port } = await startServer(t, folder);
  const open = (): string[] =>
    readdirSync('/proc/self/fd').flatMap((fd) => {
      try {
        const path = readlinkSync(`/proc/self/fd/${fd}`);
        return path.startsWith(folder) ? [path.slice(folder.length + 1)] : [];
      } catch {
        return [];
      }
    });
  for (let n = 0; n < 5; n++) {
    const client = await RawClient.greeted(port);
    const directory = await fetchDirectory(client);
    for (const path of Object.keys(FILES)) {
      const address = addressOf(directory, path);
      client.socket.write(readFrame({ wrId: 5, rkey: client.welcome.rkey, address, length: 1000 }));
      assert.equal((await client.answer())!.status, WC.SUCCESS);
    }
    assert.deepEqual(open().sort(), ['a.parquet', 'b.parquet']);
    client.socket.destroy();
    replace(folder, 'b.parquet', pattern(10_000 + n, n));
    assert.equal(await server.republish(), 'published');
    // a descriptor is closed by another thread
    for (let left = 6000; left > 0 && open().length > 1; left--) await sleep(5);
    // the one of a file that is the same stays
    assert.deepEqual(open(), ['a.parquet']);
  }
});

async function settlesAt(t: TestContext, check: () => boolean, what: string): Promise<void> {
  for (let left = 2400; !check(); left--) {
    assert.ok(left > 0, what);
    await sleep(25, undefined, { signal: t.signal });
  }
}

test('watching publishes by itself: new, rewritten and removed files, folders made anew, a root replaced', async (t) => {
  const folder = makeFolder(t, { 'lake/a.parquet': pattern(10, 1), 'lake/sub/b.parquet': pattern(20, 2) });
  const root = join(folder, 'lake');
  const { server } = await startServer(t, root, { watch: { intervalMs: 3_600_000 } });
  const served = (): string => {
    const { files, fileBytes } = server.region();
    return `${files} files, ${fileBytes} bytes`;
  };
  const becomes = (expected: string): Promise<void> =>
    settlesAt(t, () => served() === expected, `${served()} is not ${expected}`);
  writeFileSync(join(root, 'c.parquet'), pattern(40, 3));
  await becomes('3 files, 70 bytes');
  replace(root, 'sub/b.parquet', pattern(80, 4));
  await becomes('3 files, 130 bytes');
  rmSync(join(root, 'sub'), { recursive: true });
  await becomes('2 files, 50 bytes');
  mkdirSync(join(root, 'sub/deep'), { recursive: true });
  await sleep(300);
  writeFileSync(join(root, 'sub/deep/d.parquet'), pattern(160, 5));
  await becomes('3 files, 210 bytes');
  renameSync(root, join(folder, 'old'));
  mkdirSync(root);
  writeFileSync(join(root, 'e.parquet'), pattern(320, 6));
  await becomes('1 files, 320 bytes');
  // the new root is the one that is watched
  writeFileSync(join(root, 'f.parquet'), pattern(640, 7));
  await becomes('2 files, 960 bytes');
  const { generations } = server.counters();
  writeFileSync(join(root, 'notes.txt'), 'of no interest');
  await sleep(500);
  assert.equal(server.counters().generations, generations);
});

test('watching without the help of the system: looks at intervals', async (t) => {
  const folder = makeFolder(t, { 'lake/a.parquet': pattern(10, 1), 'lake/b/b.parquet': pattern(20, 2) });
  // a link to a link: the folder that the second one is in is not watched
  mkdirSync(join(folder, 'links'));
  const second = join(folder, 'links/second');
  symlinkSync(join(folder, 'lake'), second);
  symlinkSync(second, join(folder, 'first'));
  const { server } = await startServer(t, join(folder, 'first'), { watch: { intervalMs: 50 } });
  rmSync(second);
  symlinkSync(join(folder, 'lake/b'), second);
  await settlesAt(t, () => server.region().fileBytes === 20, 'the link leads elsewhere');
  const { generations } = server.counters();
  await sleep(300);
  assert.equal(server.counters().generations, generations);
});
