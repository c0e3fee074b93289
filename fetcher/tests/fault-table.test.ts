/** Every cell of the fault table, through a proxy that misbehaves in front of a server that does not; and that the table is these. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { FetchError } from '../errors.ts';
import { type OpenedTransport, type OpenTransportOptions, openTransport } from '../transport/open-transport.ts';
import type { FileVersion } from '../transport/transport.ts';
import { CASES, type Case, tableText, testName } from './fault-table.ts';
import { type Fault, MisbehavingProxy, MisbehavingWire, WIRE_FAULTS, type WireFault } from './misbehaving-proxy.ts';
import { isolateSdk, startS3Store } from './s3-store.ts';
import { makeFolder, pattern, type ServerProcess, spawnServer, startServer } from './transport-fixtures.ts';
import { startWebServer } from './web-server.ts';

isolateSdk({ AWS_ACCESS_KEY_ID: 'AKIATEST', AWS_SECRET_ACCESS_KEY: 'secret' });

const BYTES = pattern(300_000, 21);
const [START, LENGTH] = [1000, 200_000];

/** Ends by a time without bytes, which is short then; else long, for a machine that is slow does not stall. */
const SILENT: readonly string[] = ['stall', 'silence', 'drip'] satisfies Fault[];

interface Bench {
  readonly opened: OpenedTransport;
  readonly folder: string;
  /** From now on, or for the next answer or connection, the fault happens. */
  afflict(fault: Fault, duration: Case['duration']): void;
}

function isWireFault(fault: Fault): fault is WireFault {
  return WIRE_FAULTS.some((one) => one === fault);
}

async function prepare(t: TestContext, { kind, row, duration }: Case): Promise<Bench> {
  const options: OpenTransportOptions = {
    ...(SILENT.includes(row) ? { stallMs: 300, connectMs: 1000 } : {}),
    retry: { attempts: duration === 'once' ? 20 : 3, baseMs: 1, capMs: 1 },
  };
  const folder = makeFolder(t, { 'f.parquet': BYTES });
  const open = async (url: string, more: OpenTransportOptions = {}): Promise<OpenedTransport> => {
    const opened = await openTransport(url, { ...options, ...more });
    t.after(() => opened.transport.close());
    return opened;
  };
  if (kind === 'file') return { folder, opened: await open(`file://${folder}/`), afflict: () => {} };
  if (kind === 'queue pairs') {
    // what changes files has a server of its own
    const port = isOnDisk({ kind, row }) ? (await spawnServer(t, folder)).port : shared!.port;
    const wire = await MisbehavingWire.start(port);
    t.after(() => wire[Symbol.asyncDispose]());
    const afflict: Bench['afflict'] = (fault, lasting) => {
      assert.ok(isWireFault(fault));
      let left = lasting === 'once' ? 1 : Number.POSITIVE_INFINITY;
      wire.plan = () => (left-- > 0 ? fault : undefined);
      wire.replan();
    };
    return { folder, opened: await open(`rdma://127.0.0.1:${wire.port}/`), afflict };
  }
  const server = await (kind === 's3' ? startS3Store(t, folder) : startWebServer(t, folder));
  const proxy = await MisbehavingProxy.start(server.origin, { speaks: kind, contentOf: () => BYTES });
  t.after(() => proxy[Symbol.asyncDispose]());
  const afflict: Bench['afflict'] = (fault, lasting) => {
    let left = lasting === 'once' ? 1 : Number.POSITIVE_INFINITY;
    proxy.plan = () => (left-- > 0 ? fault : undefined);
  };
  const url = kind === 's3' ? `s3://${basename(folder)}/` : `${proxy.origin}/`;
  return { folder, opened: await open(url, { s3: { endpoint: proxy.origin } }), afflict };
}

/** The file as it is listed before anything goes wrong: on a machine that is slow, at the second attempt. */
async function find({ transport }: OpenedTransport): Promise<FileVersion> {
  for (let attempt = 1; ; attempt++) {
    try {
      return (await transport.list('f.parquet'))[0]!;
    } catch (error) {
      if (attempt === 10) throw error;
    }
  }
}

/** How the read ends; what it told is checked, and so are the books. */
async function outcomeOf({ transport, counters }: OpenedTransport, file: FileVersion): Promise<string> {
  const into = new Uint8Array(LENGTH);
  let arrived = 0;
  const onArrived = (bytes: number): void => {
    assert.ok(bytes > arrived && bytes <= LENGTH);
    assert.ok(BYTES.subarray(START + arrived, START + bytes).equals(into.subarray(arrived, bytes)), 'wrong bytes told');
    arrived = bytes;
  };
  try {
    await transport.read(file, START, into, { onArrived });
    assert.equal(arrived, LENGTH);
    return 'bytes';
  } catch (error) {
    assert.ok(error instanceof FetchError, String(error));
    return error.code;
  } finally {
    const { bytesOnWire, bytesDirectory, bytesDiscarded } = counters;
    assert.equal(bytesOnWire, bytesDirectory + bytesDiscarded + arrived);
  }
}

const ON_DISK: Readonly<Record<string, (path: string) => void>> = {
  truncate: (path) => truncateSync(path, 5000),
  gone: (path) => rmSync(path),
  'other-version': (path) => {
    writeFileSync(`${path}.new`, pattern(BYTES.length, 22));
    renameSync(`${path}.new`, path);
  },
};

function isOnDisk({ row, kind }: Pick<Case, 'row' | 'kind'>): boolean {
  return row === 'gone' || kind === 'file' || (kind === 'queue pairs' && row === 'other-version');
}

let sharedFolder = '';
let shared: ServerProcess | undefined;

const made = new Set<string>();

describe('the fault table', { concurrency: 8 }, () => {
  before(async () => {
    sharedFolder = mkdtempSync(join(tmpdir(), 'qanat-test-'));
    writeFileSync(join(sharedFolder, 'f.parquet'), BYTES);
    shared = await startServer(sharedFolder);
  });
  after(async () => {
    await shared?.kill();
    rmSync(sharedFolder, { recursive: true, force: true });
  });

  for (const one of CASES) {
    const { row, duration, outcome } = one;
    made.add(testName(one));
    test(testName(one), async (t) => {
      const { opened, folder, afflict } = await prepare(t, one);
      const file = await find(opened);
      if (isOnDisk(one)) ON_DISK[row]!(join(folder, 'f.parquet'));
      else afflict(row as Fault, duration);
      assert.equal(await outcomeOf(opened, file), outcome);
    });
  }
});

test('the table in ARCHITECTURE.md is this one, and each of its cells has its test', () => {
  const text = readFileSync(new URL('../../ARCHITECTURE.md', import.meta.url), 'utf8');
  const table = tableText();
  assert.ok(text.includes(table), 'node fetcher/tests/fault-table.ts prints what belongs there');
  const [head, , ...rows] = table.split('\n').map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  for (const [name, , ...cells] of rows) {
    for (const [i, cell] of cells.entries()) {
      if (cell === '—') continue;
      const [forEver, once] = cell.split('; ');
      const row = name!.slice(1, -1);
      const kind = head![i + 2];
      assert.ok(made.has(`${kind}: ${row}, for ever: ${forEver}`), `${kind}: ${row}`);
      if (once !== undefined) assert.ok(made.has(`${kind}: ${row}, once: ${once}`), `${kind}: ${row}`);
    }
  }
});
