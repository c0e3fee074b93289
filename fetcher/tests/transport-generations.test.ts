/** Generations at the client: reads that go on, reads that are stale, servers that tell late, wrongly or for ever. */
import assert from 'node:assert/strict';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type RunningServer, serveRegion } from '../../storage-server/index.ts';
import {
  type Directory,
  encodeClosed,
  encodeGenerationEvent,
  encodePayloadHeader,
  encodeWelcome,
  FRAME_HEADER_BYTES,
  planDirectory,
  REQUEST_BYTES,
  viewOf,
  WC,
} from '../../storage-server/protocol/index.ts';
import { FetchError } from '../errors.ts';
import { type OpenTransportOptions, openTransport } from '../transport/open-transport.ts';
import type { FileVersion, Transport } from '../transport/transport.ts';
import { makeFolder, pattern } from './transport-fixtures.ts';

const FILES = { 'a.parquet': pattern(3_000_000, 1), 'b.parquet': pattern(1_000_000, 2) };

function replace(folder: string, path: string, bytes: Uint8Array): void {
  writeFileSync(join(folder, `${path}.new`), bytes);
  renameSync(join(folder, `${path}.new`), join(folder, path));
}

async function serve(t: TestContext, folder: string): Promise<RunningServer> {
  const server = await serveRegion({ roots: [folder], listen: { host: '127.0.0.1', port: 0 } });
  t.after(() => server.close());
  return server;
}

async function open(t: TestContext, port: number, options: OpenTransportOptions = {}) {
  const opened = await openTransport(`rdma://127.0.0.1:${port}`, options);
  t.after(() => opened.transport.close());
  return opened;
}

const named = (files: readonly FileVersion[], path: string): FileVersion => files.find((file) => file.path === path)!;

const isStale = (error: unknown): boolean => error instanceof FetchError && error.code === 'STALE' && !error.retryable;

async function until(check: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (let left = 6000; !(await check()); left--) {
    assert.ok(left > 0, what);
    await sleep(5);
  }
}

const bookkept = (counters: { bytesOnWire: number; bytesDirectory: number; bytesDiscarded: number }): number =>
  counters.bytesOnWire - counters.bytesDirectory - counters.bytesDiscarded;

test('an idle client is told, on the connection that it has: listings are new, files that are the same are read on', async (t) => {
  const folder = makeFolder(t, FILES);
  const server = await serve(t, folder);
  const told: string[] = [];
  const { transport, counters } = await open(t, server.address().port, { onGeneration: (name) => told.push(name) });
  const files = await transport.list('');
  replace(folder, 'b.parquet', pattern(900_000, 3));
  writeFileSync(join(folder, 'c.parquet'), pattern(10, 4));
  assert.equal(await server.republish(), 'published');
  await until(() => told.length > 0, 'the client is told');
  assert.deepEqual(told, [server.region().generation]);
  const now = await transport.list('');
  assert.deepEqual(
    now.map(({ path, length }) => [path, length]),
    [
      ['a.parquet', 3_000_000],
      ['b.parquet', 900_000],
      ['c.parquet', 10],
    ],
  );
  const into = new Uint8Array(10);
  await transport.read(named(files, 'a.parquet'), 77, into);
  assert.ok(FILES['a.parquet'].subarray(77, 87).equals(into));
  await assert.rejects(transport.read(named(files, 'b.parquet'), 0, into), isStale);
  await transport.read(named(now, 'b.parquet'), 0, into);
  assert.ok(pattern(900_000, 3).subarray(0, 10).equals(into));
  rmSync(join(folder, 'b.parquet'));
  await server.republish();
  await until(() => told.length > 1, 'the client is told again');
  await assert.rejects(transport.read(named(now, 'b.parquet'), 0, into), isStale);
  await transport.read(named(now, 'c.parquet'), 0, into);
  assert.ok(pattern(10, 4).equals(into));
  assert.deepEqual([counters.reconnects, counters.generations], [0, 2]);
  assert.equal(server.counters().connectionsTotal, 1);
});

for (const options of [{}, { checksum: true }, { connections: 3 }] satisfies OpenTransportOptions[]) {
  test(`reads under way go on where their file is the same, and are stale where not: ${JSON.stringify(options)}`, async (t) => {
    const folder = makeFolder(t, FILES);
    const server = await serve(t, folder);
    const { transport, counters } = await open(t, server.address().port, { ...options, readBytesMax: 128 << 10 });
    let reported = 0;
    for (let n = 0; n < 5; n++) {
      const files = await transport.list('');
      let publishing: Promise<unknown> | undefined;
      const reads = Array.from({ length: 6 }, async (_, k) => {
        const path = k % 2 === 0 ? 'a.parquet' : 'b.parquet';
        const file = named(files, path);
        const into = new Uint8Array(file.length);
        let arrived = 0;
        const onArrived = (bytes: number): void => {
          assert.ok(bytes > arrived);
          arrived = bytes;
          if (publishing !== undefined || k !== n % 6) return;
          replace(folder, 'b.parquet', pattern(1_000_000, 10 + n));
          publishing = server.republish();
        };
        const outcome = transport.read(file, 0, into, { onArrived });
        try {
          await outcome;
        } finally {
          reported += arrived;
        }
        const salt = k % 2 === 0 ? 1 : n === 0 ? 2 : 9 + n;
        assert.ok(pattern(file.length, salt).equals(into), `${path} is of one version`);
      });
      for (const [k, { status, ...result }] of (await Promise.allSettled(reads)).entries()) {
        if (status === 'rejected') assert.ok(k % 2 === 1 && isStale((result as PromiseRejectedResult).reason), `${k}`);
      }
      assert.equal(await publishing, 'published');
      await until(
        async () => (await transport.list('')).every(({ etag }) => etag !== named(files, 'b.parquet').etag),
        '',
      );
    }
    await until(() => bookkept(counters) === reported, 'every byte is accounted for');
  });
}

test('a file that has changed before it is published is stale, and those around it do not notice', async (t) => {
  const folder = makeFolder(t, FILES);
  const server = await serve(t, folder);
  const { transport } = await open(t, server.address().port, { retry: { budget: 3, attempts: 2, baseMs: 1 } });
  const files = await transport.list('');
  replace(folder, 'b.parquet', pattern(1_000_000, 5));
  for (let n = 0; n < 20; n++) {
    const into = Array.from({ length: 6 }, () => new Uint8Array(10_000));
    const good = into.map((bytes, k) => transport.read(named(files, 'a.parquet'), k * 1000, bytes));
    const bad = transport.read(named(files, 'b.parquet'), n, new Uint8Array(100));
    await assert.rejects(bad, isStale);
    await Promise.all(good);
    for (const [k, bytes] of into.entries())
      assert.ok(FILES['a.parquet'].subarray(k * 1000, k * 1000 + 10_000).equals(bytes));
  }
});

interface Script {
  readonly port: number;
  /** What the next hello is answered with, and behind it. */
  welcome: () => Uint8Array;
  /** Answers a READ. */
  answer: (read: Read) => Uint8Array;
  connections: number;
}

interface Read {
  readonly rkey: number;
  readonly address: number;
  readonly length: number;
  readonly wrLow: number;
}

/** A server that says exactly what a test wants it to. */
async function scripted(t: TestContext): Promise<Script> {
  const script: Script = {
    port: 0,
    welcome: () => new Uint8Array(0),
    answer: () => new Uint8Array(0),
    connections: 0,
  };
  const server = createServer((socket) => {
    script.connections++;
    socket.on('error', () => {});
    let greeted = false;
    socket.on('data', (bytes: Buffer) => {
      if (!greeted) {
        greeted = true;
        socket.write(script.welcome());
        return;
      }
      for (let at = 0; at + REQUEST_BYTES <= bytes.byteLength; at += REQUEST_BYTES) {
        const address = Number(bytes.readBigUInt64LE(at + 16));
        const length = bytes.readUInt32LE(at + 24);
        socket.write(
          script.answer({ rkey: bytes.readUInt32LE(at + 4), address, length, wrLow: bytes.readUInt32LE(at + 8) }),
        );
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  return Object.assign(script, { port: (server.address() as { port: number }).port });
}

interface Made {
  readonly prefix: Uint8Array;
  readonly directory: Directory;
  readonly rkey: number;
}

/** A region of one file `f` of zeros; regions with the same etag have the same file. */
function made(number: number, etag: string, fill = 0): Made {
  const files = [{ path: 'f', length: 100 + fill, etag, modifiedMs: 0 }];
  return { ...planDirectory(new Uint8Array(16).fill(number), 64, files), rkey: number };
}

const servedAs = ({ directory, rkey }: Made) => ({
  generation: directory.generation,
  rkey,
  regionLength: directory.regionLength,
});

const welcomeOf = (region: Made): Uint8Array =>
  encodeWelcome({
    checksum: false,
    queueDepth: 128,
    outstandingMax: 16,
    readBytesMax: 1 << 20,
    ...servedAs(region),
  });

function frame(wrLow: number, status: number, payload: Uint8Array, stale = false): Uint8Array {
  const head = new Uint8Array(FRAME_HEADER_BYTES);
  const { byteLength: payloadBytes } = payload;
  encodePayloadHeader(viewOf(head), 0, {
    last: true,
    stale,
    wrLow,
    wrHigh: 0,
    offset: 0,
    status,
    crc: 0,
    payloadBytes,
  });
  return Buffer.concat([head, payload]);
}

/** Answers as an honest server of `region` does. */
function honest(region: Made): (read: Read) => Uint8Array {
  const bytes = Buffer.alloc(region.directory.regionLength);
  bytes.set(region.prefix);
  return ({ rkey, address, length, wrLow }) => {
    if (rkey !== region.rkey) return frame(wrLow, WC.REM_ACCESS_ERR, Buffer.from('another generation'), true);
    return frame(wrLow, WC.SUCCESS, bytes.subarray(address, address + length));
  };
}

async function lengthOf(transport: Transport): Promise<number> {
  return (await transport.list(''))[0]!.length;
}

test('an event right behind the welcome counts, and so does one before the directory is there', async (t) => {
  const server = await scripted(t);
  const [old, fresh, last] = [made(1, 'x'), made(2, 'y', 1), made(3, 'z', 2)];
  const event = (region: Made): Uint8Array => encodeGenerationEvent(servedAs(region), false);
  server.welcome = () => {
    server.welcome = () => welcomeOf(last);
    return Buffer.concat([welcomeOf(old), event(fresh), event(last)]);
  };
  server.answer = honest(last);
  const first = await open(t, server.port, { retry: { attempts: 1 } });
  assert.equal(await lengthOf(first.transport), 102);
  assert.ok(server.connections <= 2);

  // what was asked of the old generation is answered still, behind the event
  server.connections = 0;
  server.welcome = () => welcomeOf(old);
  server.answer = (read) =>
    Buffer.concat(
      read.address === 0 && read.rkey === 1
        ? [event(last), honest(old)(read)]
        : [honest(read.rkey === 1 ? old : last)(read)],
    );
  const second = await open(t, server.port, { retry: { attempts: 1 } });
  assert.equal(await lengthOf(second.transport), 102);
  assert.equal(server.connections, 1);
});

test('an event that nobody sent: a refusal alone makes a client look again, at once', async (t) => {
  const server = await scripted(t);
  const [old, fresh] = [made(1, 'x'), made(2, 'x', 0)];
  server.welcome = () => welcomeOf(old);
  server.answer = honest(old);
  const { transport, counters } = await open(t, server.port, { retry: { attempts: 1, budget: 1 } });
  const [file] = await transport.list('');
  server.welcome = () => welcomeOf(fresh);
  server.answer = honest(fresh);
  await transport.read(file!, 0, new Uint8Array(100));
  assert.deepEqual([server.connections, counters.generations], [2, 1]);
});

test('a directory that goes stale while it is read is read again, as long as there is an end to it', async (t) => {
  const server = await scripted(t);
  const regions = Array.from({ length: 200 }, (_, k) => made(1 + k, `e${k}`, k));
  let reads = 0;
  let patience = 24;
  server.welcome = () => welcomeOf(regions[Math.floor(reads / 2)]!);
  // each read of a directory's bytes finds another generation, until patience is over
  server.answer = (read) => {
    const current = regions[Math.floor(reads / 2)]!;
    if (reads < patience) reads++;
    const next = regions[Math.floor(reads / 2)]!;
    const event = next === current ? new Uint8Array(0) : encodeGenerationEvent(servedAs(next), false);
    return Buffer.concat([event, honest(next)(read)]);
  };
  const { transport } = await open(t, server.port, { retry: { attempts: 1 } });
  assert.equal(await lengthOf(transport), 112);
  patience = 1000;
  reads = 0;
  server.welcome = () => Buffer.concat([welcomeOf(regions[0]!), encodeGenerationEvent(servedAs(regions[1]!), false)]);
  server.answer = ({ wrLow }) => {
    reads++;
    return frame(wrLow, WC.REM_ACCESS_ERR, Buffer.from('no'), true);
  };
  const endless = await open(t, server.port, { retry: { attempts: 2, baseMs: 1 } });
  await assert.rejects(
    endless.transport.list(''),
    (error) => error instanceof FetchError && error.code === 'ACCESS' && /gave up/.test(error.message),
  );
  assert.ok(reads < 100, `${reads} reads`);
});

test('a pair that fails between two READs of its directory is a loss that is tried again, and no READ', async (t) => {
  const server = await scripted(t);
  const region = made(1, 'x');
  server.welcome = () => welcomeOf(region);
  // the end comes together with the answer to the first READ, before there can be a second
  server.answer = (read) =>
    Buffer.concat(server.connections > 1 ? [honest(region)(read)] : [honest(region)(read), encodeClosed()]);
  const { transport, counters, activity } = await open(t, server.port);
  assert.equal(await lengthOf(transport), 100);
  assert.equal(server.connections, 2);
  assert.deepEqual([...activity!.completions], [[WC.SUCCESS, 3]]);
  assert.equal(counters.requests, 3);
});

test('events: unknown ones are skipped, those that make no sense end the connection', async (t) => {
  const region = made(1, 'x');
  const event = encodeGenerationEvent(servedAs(region), false);
  const changed = (at: number, ...bytes: number[]): Uint8Array => {
    const copy = Uint8Array.from(event);
    copy.set(bytes, at);
    return copy;
  };
  const cases: [name: string, behind: Uint8Array, fails: boolean][] = [
    ['the generation that it is anyway', event, false],
    ['an unknown event', changed(20, 9), false],
    ['an unknown event without a payload', changed(20, 9).with(4, 0).subarray(0, 32), false],
    ['a generation of 31 bytes', changed(4, 31).subarray(0, 63), true],
    ['a generation without a payload', changed(4, 0).subarray(0, 32), true],
    ['more bytes than events have', changed(4, 1, 0x10), true],
    ['a reserved field', changed(52, 1), true],
    ['a region beyond 2^53', changed(56, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), true],
    ['a stale event', changed(3, 2), true],
  ];
  for (const [name, behind, fails] of cases) {
    const server = await scripted(t);
    server.welcome = () => Buffer.concat([welcomeOf(region), behind]);
    server.answer = honest(region);
    const { transport } = await open(t, server.port, { retry: { attempts: 1 } });
    const list = transport.list('');
    if (!fails) assert.equal((await list).length, 1, name);
    else await assert.rejects(list, (error) => error instanceof FetchError && /PROTOCOL|LOST/.test(error.code), name);
  }
});

test('a generation that does not hold what it promises is an error of its own; the next one is taken', async (t) => {
  const server = await scripted(t);
  const [old, bad, good] = [made(1, 'x'), made(2, 'y', 1), made(3, 'z', 2)];
  server.welcome = () => welcomeOf(old);
  server.answer = honest(old);
  const { transport } = await open(t, server.port, { retry: { attempts: 1 } });
  assert.equal(await lengthOf(transport), 100);
  // the directory is that of another region
  server.welcome = () => welcomeOf(bad);
  server.answer = honest({ ...good, rkey: bad.rkey });
  const [file] = await transport.list('');
  await assert.rejects(transport.read(file!, 0, new Uint8Array(1)), (error) => error instanceof FetchError);
  await assert.rejects(transport.list(''), (error) => error instanceof FetchError && error.code === 'PROTOCOL');
  server.welcome = () => welcomeOf(good);
  server.answer = honest(good);
  assert.equal(await lengthOf(transport), 102);
});
