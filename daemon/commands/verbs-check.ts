/**
 * `qanat verbs-check host:port`: from this machine's devices to bytes of the server, step by step, until one fails. Reads
 * the same ranges over RDMA and over TCP and compares them, into memory that is registered with the device and into memory
 * that is not, and times small and large reads of both.
 */
import { FetchError, type FileVersion, openTransport, type Transport } from '../../fetcher/index.ts';
import { type DeviceFacts, surveyVerbs } from '../../storage-server/verbs/index.ts';
import { formatBytes } from '../argument.ts';
import { CommandError } from '../errors.ts';
import type { OptionValues } from '../options.ts';
import { writeStdout } from '../output/output.ts';
import { alignRows, printable } from '../output/printable.ts';
import { namedDevice, sourceAccess } from '../source-options.ts';
import { type CommandContext, printJson } from './command.ts';
import { CHECK_FILES_MAX, CHECK_LARGE_READS, CHECK_SIZES, CHECK_SMALL_READS } from './limits.ts';

/** What became of one step. */
interface Step {
  readonly step: string;
  readonly ok: boolean;
  readonly detail: string;
}

/** Medians and rates of one transport. */
interface Timing {
  readonly transport: 'rdma' | 'tcp';
  readonly smallBytes: number;
  readonly smallMicroseconds: number;
  readonly largeBytes: number;
  readonly largeMiBPerSecond: number;
}

type TellStep = (step: string, detail: string) => void;

export async function verbsCheck({ operands, options, interruption }: CommandContext): Promise<void> {
  const steps: Step[] = [];
  const timings: Timing[] = [];
  const tell: TellStep = (step, detail) => steps.push({ step, ok: true, detail });
  let failure: CommandError | undefined;
  try {
    await check(urlOf(operands[0]!), options, interruption.signal, tell, timings);
  } catch (error) {
    const isOfStep = error instanceof StepError;
    if (!isOfStep && !(error instanceof FetchError)) throw error;
    const step = isOfStep ? error.step : 'reads';
    steps.push({ step, ok: false, detail: error.reason });
    failure = new CommandError('CHECK', `${step}: ${error.reason}`);
  }
  if (options.json) await printJson({ ok: failure === undefined, steps, timings });
  else await writeStdout(textOf(steps, timings));
  if (failure !== undefined) throw failure;
}

/** A step that failed, with the reason and what to do. */
class StepError extends Error {
  readonly step: string;
  readonly reason: string;

  constructor(step: string, reason: string) {
    super(reason);
    this.step = step;
    this.reason = reason;
  }
}

async function check(
  url: string,
  options: OptionValues,
  signal: AbortSignal,
  tell: TellStep,
  timings: Timing[],
): Promise<void> {
  await checkMachine(namedDevice(options.rdmaDevice), tell);
  const tcp = await reach(url, 'tcp', options, signal);
  try {
    const files = await listFiles(tcp.transport);
    tell('server', `${url}: ${files.length} files`);
    const rdma = await reach(url, 'verbs', options, signal);
    try {
      await rdma.transport.list('').catch((error: unknown) => {
        throw error instanceof FetchError ? new StepError('queue pair', error.reason) : error;
      });
      tell('queue pair', rdma.told());
      if (!sameFiles(files, await rdma.transport.list('')))
        throw new StepError('reads', 'the directories differ: was it published meanwhile?');
      const large = files.filter(({ length }) => length > 0).slice(0, CHECK_FILES_MAX);
      if (large.length === 0) {
        tell('reads', 'the directory is equal; the server has no file with bytes to read');
        return;
      }
      tell('reads', await compare(large, tcp.transport, rdma.transport));
      const [file] = [...files].sort((a, b) => b.length - a.length);
      timings.push(await time('rdma', file!, rdma.transport), await time('tcp', file!, tcp.transport));
    } finally {
      await rdma.transport.close();
    }
  } finally {
    await tcp.transport.close();
  }
}

/** Library, devices and limits of this machine. */
async function checkMachine(wanted: string | undefined, tell: TellStep): Promise<void> {
  const { libraryProblem, devices, devicesProblem, lockBytesMax } = await surveyVerbs();
  if (libraryProblem !== undefined) throw new StepError('library', libraryProblem);
  tell('library', 'libibverbs.so.1 is there');
  if (devicesProblem !== undefined) throw new StepError('device', devicesProblem);
  const usable = devices.find(({ name, facts }) => facts !== undefined && (wanted === undefined || name === wanted));
  for (const { name, facts, problem } of devices) {
    if (facts !== undefined) tell('device', factsText(facts));
    else if (usable === undefined && (wanted === undefined || name === wanted)) throw new StepError('device', problem!);
    else tell('device', `${name} can't be used: ${problem}`);
  }
  if (usable === undefined) throw new StepError('device', `there is no ${wanted}`);
  const limit = Number.isFinite(lockBytesMax) ? formatBytes(lockBytesMax) : 'without a limit';
  tell('memory', `may be locked: ${limit}; what does not fit (--memory) is copied to its place`);
}

function factsText({ name, port, link, gidKind, gid, mtuBytes, messageBytesMax, readsOutMax }: DeviceFacts): string {
  const reads = `reads of ${formatBytes(messageBytesMax)} at most, ${readsOutMax} under way`;
  return `${name}, port ${port}, ${link}, ${gidKind} ${gid}, MTU ${mtuBytes}, ${reads}`;
}

interface Reached {
  readonly transport: Transport;
  /** How reads go. */
  readonly told: () => string;
}

async function reach(
  url: string,
  transport: 'verbs' | 'tcp',
  options: OptionValues,
  signal: AbortSignal,
): Promise<Reached> {
  let text = '';
  const opened = await openTransport(url, {
    ...sourceAccess(options),
    rdma: { transport, device: namedDevice(options.rdmaDevice), busyPoll: options.busyPoll },
    onTransport: (how) => {
      text = how;
    },
    retry: { attempts: 1 },
  });
  signal.addEventListener('abort', () => void opened.transport.close(), { once: true });
  return { transport: opened.transport, told: () => text };
}

async function listFiles(transport: Transport): Promise<readonly FileVersion[]> {
  try {
    return await transport.list('');
  } catch (error) {
    throw error instanceof FetchError ? new StepError('server', error.reason) : error;
  }
}

function sameFiles(a: readonly FileVersion[], b: readonly FileVersion[]): boolean {
  return a.length === b.length && a.every(({ path, etag }, i) => path === b[i]!.path && etag === b[i]!.etag);
}

/** Memory that is registered with the device when something is read into it: large, and shared. */
function sharedMemory(): Uint8Array {
  return new Uint8Array(new SharedArrayBuffer(2 * Math.max(...CHECK_SIZES)));
}

async function compare(files: readonly FileVersion[], tcp: Transport, rdma: Transport): Promise<string> {
  const shared = sharedMemory();
  let ranges = 0;
  for (const file of files) {
    for (const size of CHECK_SIZES) {
      const length = Math.min(size, file.length);
      for (const start of new Set([0, Math.floor((file.length - length) / 3), file.length - length])) {
        const expected = new Uint8Array(length);
        await tcp.read(file, start, expected);
        for (const into of [shared.subarray(0, length), new Uint8Array(length)]) {
          into.fill(0xa5);
          await rdma.read(file, start, into);
          ranges++;
          if (!Buffer.from(into).equals(expected)) {
            throw new StepError('reads', `${file.path}: ${length} bytes at ${start} are not what comes over TCP`);
          }
        }
      }
    }
  }
  return `${ranges} ranges of ${files.length} files, up to ${formatBytes(Math.max(...CHECK_SIZES))}, equal to TCP's`;
}

async function time(name: Timing['transport'], file: FileVersion, transport: Transport): Promise<Timing> {
  const into = sharedMemory();
  const smallBytes = Math.min(4096, file.length);
  const small: number[] = [];
  for (let i = 0; i < CHECK_SMALL_READS; i++) {
    const start = Math.floor(((file.length - smallBytes) * i) / CHECK_SMALL_READS);
    const before = performance.now();
    await transport.read(file, start, into.subarray(0, smallBytes));
    small.push(performance.now() - before);
  }
  const largeBytes = Math.min(Math.max(...CHECK_SIZES), file.length);
  const before = performance.now();
  for (let i = 0; i < CHECK_LARGE_READS; i++) {
    const start = Math.floor(((file.length - largeBytes) * i) / CHECK_LARGE_READS);
    await transport.read(file, start, into.subarray(0, largeBytes));
  }
  const seconds = (performance.now() - before) / 1000;
  const median = small.sort((a, b) => a - b)[small.length >>> 1]!;
  const rate = (CHECK_LARGE_READS * largeBytes) / 2 ** 20 / seconds;
  return {
    transport: name,
    smallBytes,
    smallMicroseconds: Math.round(median * 1000),
    largeBytes,
    largeMiBPerSecond: Math.round(rate * 10) / 10,
  };
}

function textOf(steps: readonly Step[], timings: readonly Timing[]): string {
  const rows = steps.map(({ step, ok, detail }) => [step, ok ? 'ok' : 'FAILED', printable(detail)]);
  for (const { transport, smallBytes, smallMicroseconds, largeBytes, largeMiBPerSecond } of timings) {
    const small = `${formatBytes(smallBytes)} in ${smallMicroseconds} us (median)`;
    const large = `${formatBytes(largeBytes)} one after the other at ${largeMiBPerSecond} MiB/s`;
    rows.push([transport, '', `${small}, ${large}`]);
  }
  return alignRows(rows, new Set());
}

/** `host:port`, or any location of a server. */
function urlOf(text: string): string {
  return text.includes('://') ? text : `rdma://${text}/`;
}
