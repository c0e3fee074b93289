/** The commands over RDMA, as a user runs them: `qanat serve` on one device, `qanat scan`, `cp` and the check on the other. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { CLIENT_END, countedDuring, SERVER_END } from '../../storage-server/tests/verbs-cable.ts';
import { type CommandResult, QANAT, qanat } from './command-run.ts';

const ROWS = 40_000;
/** Bytes of a packet's payload on this path. */
const PACKET_BYTES = 4096;
const RDMA = ['--transport', 'verbs', '--rdma-device', CLIENT_END.device];
const TCP = ['--transport', 'tcp'];

const folder = mkdtempSync(join(tmpdir(), 'qanat-verbs-'));
const numbers = table(ROWS);
let server: ChildProcess;
let ready: { rdma: string; http: string; rdmaDevice: string };
const url = (path: string): string => `rdma://${ready.rdma}/${path}`;

/** Numbers that follow from the row, texts with a dictionary, and nulls, in four row groups. */
function table(rows: number): Uint8Array {
  const column = <T>(value: (row: number) => T): T[] => Array.from({ length: rows }, (_, row) => value(row));
  const bytes = parquetWriteBuffer({
    columnData: [
      { name: 'id', data: column((row) => BigInt(row) * 7919n), type: 'INT64' },
      { name: 'n', data: column((row) => (row * 7919) % 100_003), type: 'INT32' },
      { name: 'd', data: column((row) => (row % 3 === 0 ? null : row / 4)), type: 'DOUBLE' },
      { name: 'name', data: column((row) => `name ${row % 1000}`), type: 'STRING' },
    ],
    rowGroupSize: rows / 4,
    codec: 'UNCOMPRESSED',
  });
  return new Uint8Array(bytes);
}

before(async () => {
  writeFileSync(join(folder, 'numbers.parquet'), numbers);
  writeFileSync(join(folder, 'few.parquet'), table(100));
  server = spawn(
    process.execPath,
    [
      ...[QANAT, 'serve', folder, '--rdma-device', SERVER_END.device, '--http', '127.0.0.1:0'],
      ...['--listen', `${SERVER_END.address}:0`, '--insecure-listen'],
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const [line] = (await once(createInterface({ input: server.stdout! }), 'line')) as [string];
  console.log(`# ${line}`);
  ready = JSON.parse(line);
});
after(() => {
  server.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

async function scanned(path: string, how: readonly string[]): Promise<CommandResult> {
  const result = await qanat(['scan', url(path), '--format', 'checksum', ...how]);
  assert.equal(result.code, 0, `${how.join(' ')}: ${result.signal} ${result.errors}`);
  return result;
}

test('serve says over which device', () => {
  assert.equal(ready.rdmaDevice, SERVER_END.device);
});

test('a scan over RDMA has the values of one over TCP, and its bytes went from device to device', async () => {
  const texts: string[] = [];
  for (const [how, isRdma] of [
    // what is not said is `auto`, which takes RDMA where it is
    [['--rdma-device', CLIENT_END.device], true],
    [TCP, false],
  ] as const) {
    const counted = await countedDuring(SERVER_END, async () => {
      const result = await scanned('numbers.parquet', how);
      texts.push(result.text);
      console.log(`# ${how.join(' ')}: ${result.errors.trim()}`);
    });
    console.log(`# ${how.join(' ')}: ${JSON.stringify(counted)}`);
    const packets = Math.floor(numbers.byteLength / PACKET_BYTES);
    if (isRdma) assert.ok(counted.rdmaSent >= packets, `${counted.rdmaSent} packets, expected ${packets}`);
    else assert.equal(counted.rdmaSent, 0);
    assert.ok(counted.wireSent >= numbers.byteLength * 0.9);
  }
  assert.equal(texts[1], texts[0]);
  assert.ok(texts[0]!.includes(String(ROWS)));
});

test('some columns of several files as CSV: the same over both', async () => {
  const over = async (how: readonly string[]): Promise<Buffer> => {
    const args = ['scan', url('*.parquet'), '--columns', 'name,id', '--format', 'csv', ...how];
    const { code, signal, stdout, errors } = await qanat(args);
    assert.equal(code, 0, `${how.join(' ')}: ${signal} ${errors}`);
    return stdout;
  };
  const rdma = await over(RDMA);
  assert.ok(rdma.byteLength > ROWS);
  assert.ok(rdma.equals(await over(TCP)));
});

test('cp: byte for byte', async () => {
  const copy = join(folder, 'copy');
  const { code, errors } = await qanat(['cp', url('numbers.parquet'), copy, ...RDMA]);
  assert.equal(code, 0, errors);
  assert.ok(readFileSync(copy).equals(numbers));
});

test('verbs-check goes through, and says which step fails where one does', async () => {
  const good = await qanat(['verbs-check', ready.rdma, '--rdma-device', CLIENT_END.device]);
  console.log(good.text.replace(/^/gm, '# '));
  assert.equal(good.code, 0, good.errors);
  const bad = await qanat(['verbs-check', ready.rdma, '--rdma-device', 'mlx5_9']);
  assert.notEqual(bad.code, 0);
  assert.match(bad.text + bad.errors, /mlx5_9/);
});

test('metrics tell of the device', async () => {
  const text = await (await fetch(`http://${ready.http}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.includes('rdma') && !line.startsWith('#'));
  console.log(lines.join('\n').replace(/^/gm, '# '));
  assert.ok(lines.some((line) => line.includes(SERVER_END.device)));
});

test('a killed server ends a scan with an error, not with fewer rows', async () => {
  let counted = 0;
  const running = qanat(['scan', url('numbers.parquet'), '--format', 'csv', '--stall-timeout', '2s', ...RDMA], {
    started: (child) => {
      child.stdout!.on('data', (data: Buffer) => {
        if (counted === 0) server.kill('SIGKILL');
        counted += data.byteLength;
      });
    },
  });
  const { code, text, errors } = await running;
  console.log(`# exit code ${code}, ${counted} bytes: ${errors.trim()}`);
  // what had come before it was killed may have been all
  if (code === 0) assert.equal(text.trimEnd().split('\n').length, ROWS + 1);
  else assert.match(errors, /^qanat scan: fetch (LOST|REFUSED|STALLED)/);
});
