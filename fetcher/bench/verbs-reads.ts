/**
 * `npm run test:verbs -- --bench`, in the virtual machine: reads of three sizes over RDMA, its completions waited for and
 * asked for, and over TCP, between the same two addresses and processes. Latency is that of one read after the other,
 * throughput that of eight at a time; server CPU is what the kernel puts down to the server's process in the latter. The
 * sides take turns, and figures are medians of rounds. Everything is emulated in software: only the ratios mean something.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { pattern } from '../tests/transport-fixtures.ts';
import { openOverRdma } from '../tests/verbs-rig.ts';
import type { OpenedTransport, OpenTransportOptions } from '../transport/open-transport.ts';

const FILE_BYTES = 32 << 20;
const ROUNDS = 3;
const AT_A_TIME = 8;
/** Bytes of a read, reads one after the other, reads of which eight are under way. */
const SIZES: readonly (readonly [bytes: number, alone: number, together: number])[] = [
  [4 << 10, 200, 1600],
  [64 << 10, 60, 400],
  [1 << 20, 12, 64],
];
const SIDES: Readonly<Record<string, OpenTransportOptions>> = {
  'verbs, event-driven': {},
  'verbs, busy-polled': { rdma: { busyPoll: true } },
  TCP: { rdma: { transport: 'tcp' } },
};
/** Clock ticks of /proc in a second, on every Linux that there is. */
const TICKS = 100;

interface Figures {
  readonly microseconds: number[];
  readonly mibPerSecond: number[];
  cpuSeconds: number;
  bytes: number;
}

const folder = mkdtempSync(join(tmpdir(), 'qanat-bench-'));
const bytes = pattern(FILE_BYTES, 1);
writeFileSync(join(folder, 'a.parquet'), bytes);
const script = fileURLToPath(new URL('../tests/verbs-server.ts', import.meta.url));
const server = spawn(process.execPath, [script, '0', folder], { stdio: ['ignore', 'pipe', 'inherit'] });
const [port] = (await once(createInterface({ input: server.stdout }), 'line')) as [string];
const memory = new Uint8Array(new SharedArrayBuffer(AT_A_TIME << 20));
const figures = new Map<string, Figures>();
for (let round = 0; round < ROUNDS; round++) {
  for (const [side, options] of Object.entries(SIDES)) {
    const opened = await openOverRdma(Number(port), options);
    for (const [size, alone, together] of SIZES) await measure(opened, size, alone, together, figuresOf(side, size));
    await opened.transport.close();
  }
}
server.kill();
rmSync(folder, { recursive: true });
console.log('| read | transport | latency | throughput | server CPU seconds per GB |\n| --- | --- | --- | --- | --- |');
for (const [size] of SIZES) {
  for (const side of Object.keys(SIDES)) {
    const { microseconds, mibPerSecond, cpuSeconds, bytes: moved } = figuresOf(side, size);
    const name = size < 1 << 20 ? `${size >> 10} KiB` : `${size >> 20} MiB`;
    const cells = [`${Math.round(median(microseconds))} us`, `${median(mibPerSecond).toFixed(1)} MiB/s`];
    console.log(`| ${name} | ${side} | ${cells.join(' | ')} | ${((cpuSeconds / moved) * 1e9).toFixed(2)} |`);
  }
}

function figuresOf(side: string, size: number): Figures {
  const key = `${side} ${size}`;
  const found = figures.get(key) ?? { microseconds: [], mibPerSecond: [], cpuSeconds: 0, bytes: 0 };
  figures.set(key, found);
  return found;
}

async function measure(
  { transport }: OpenedTransport,
  size: number,
  alone: number,
  together: number,
  into: Figures,
): Promise<void> {
  const file = (await transport.list(''))[0]!;
  let state = 1;
  const read = async (slot: number): Promise<void> => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const start = Math.floor((state / 2 ** 32) * (FILE_BYTES / size)) * size;
    const target = memory.subarray(slot << 20, (slot << 20) + size);
    await transport.read(file, start, target);
    assert.ok(target[0] === bytes[start] && target.at(-1) === bytes[start + size - 1], 'other bytes');
  };
  await read(0);
  for (let k = 0; k < alone; k++) {
    const began = performance.now();
    await read(0);
    into.microseconds.push((performance.now() - began) * 1000);
  }
  const cpu = serverSeconds();
  const began = performance.now();
  let left = together;
  await Promise.all(
    Array.from({ length: AT_A_TIME }, async (_, slot) => {
      while (left-- > 0) await read(slot);
    }),
  );
  into.mibPerSecond.push((together * size) / 2 ** 20 / ((performance.now() - began) / 1000));
  into.cpuSeconds += serverSeconds() - cpu;
  into.bytes += together * size;
}

/** Processor time of the server so far, its own and the kernel's on its behalf. */
function serverSeconds(): number {
  const fields = readFileSync(`/proc/${server.pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1]!;
}
