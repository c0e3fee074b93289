/**
 * `qanat mount`: the files of a location in a folder, until it is unmounted or told to stop. One JSON line on standard
 * output when the mount answers, logs on standard error. The mount itself lives in a thread of its own
 * (mount/mount-thread.ts); here are options, signals, metrics, the log, and the process in the background.
 */
import { writeSync } from 'node:fs';
import { resolve } from 'node:path';
import { PREFETCH_DEPTH_DEFAULT } from '../../fetcher/index.ts';
import { formatBytes, formatCounted, formatHostPort, formatMs } from '../argument.ts';
import { type ProcessEndpoint, startEndpoint } from '../endpoint.ts';
import { CommandError } from '../errors.ts';
import { createLog, type Log } from '../log.ts';
import { isBackground, openLogFile, startBackground, tellFailed, tellReady } from '../mount/background.ts';
import type { MountEnd, MountFacts, MountSettings } from '../mount/mount-messages.ts';
import { MountProcess } from '../mount/mount-process.ts';
import { mountReportText } from '../mount/mount-report-text.ts';
import { writePidFile } from '../mount/pid-file.ts';
import { revivedError } from '../mount/posted-error.ts';
import type { OptionValues } from '../options.ts';
import { writeStdout } from '../output/output.ts';
import { printable } from '../output/printable.ts';
import { defaultDecoders, MEMORY_BYTES_DEFAULT } from '../scan/engine.ts';
import { type ServiceState, tellServiceManager } from '../service-manager.ts';
import { sourceAccess } from '../source-options.ts';
import { type CommandContext, printJson } from './command.ts';
import { cacheSettings } from './disk-cache.ts';
import { DRAIN_MS_DEFAULT } from './limits.ts';

/** For benchmarks, which compare with a mount that knows nothing of Parquet. */
const PLAIN_VARIABLE = 'QANAT_INTERNAL_PLAIN_MOUNT';

export async function mount(context: CommandContext): Promise<void> {
  const { options, interruption } = context;
  if (options.foreground && options.daemon) {
    throw new CommandError('USAGE', '--foreground and --daemon exclude each other');
  }
  if (!options.daemon) return mountHere(context);
  if (isBackground()) return mountInBackground(context);
  const line = await startBackground(options.logFile, interruption.signal);
  await announce(line, options);
}

/** The process that was started to stay: what happens before it is ready is told to the one that waits for it. */
async function mountInBackground(context: CommandContext): Promise<void> {
  try {
    await mountHere(context);
  } catch (error) {
    tellFailed(error);
    throw error;
  }
}

async function mountHere(context: CommandContext): Promise<void> {
  const { options, interruption } = context;
  // a terminal that goes away must not leave a dead mount behind
  process.on('SIGHUP', () => process.emit('SIGTERM', 'SIGTERM'));
  const log = mountLog(options);
  const readiness: { reason: string | undefined } = { reason: 'starting' };
  const endpoint = await openEndpoint(options, () => readiness.reason);
  try {
    const mounted = await MountProcess.start(settingsOf(context), log, interruption.signal);
    // From here on there is something to unmount, which has a bound of its own.
    interruption.bounded = false;
    let removePidFile: (() => void) | undefined;
    let problem: unknown;
    try {
      if (endpoint !== undefined) mounted.addTo(endpoint.registry);
      if (options.pidFile !== undefined) removePidFile = writePidFile(options.pidFile);
      readiness.reason = undefined;
      await tellMounted(mounted.facts, log, endpoint, options);
      await Promise.race([aborted(interruption.signal), mounted.ended]);
    } catch (error) {
      problem = error;
    }
    readiness.reason = 'stopping';
    await tell(log, 'stopping', 'unmounting');
    const end = await endOf(mounted, options, problem === undefined);
    removePidFile?.();
    if (problem !== undefined) throw problem;
    tellEnd(end, log, options);
  } finally {
    await endpoint?.close();
  }
}

async function endOf(
  mounted: MountProcess,
  { drainTimeout = DRAIN_MS_DEFAULT }: OptionValues,
  isWell: boolean,
): Promise<MountEnd | undefined> {
  try {
    return await mounted.unmount(drainTimeout);
  } catch (error) {
    if (isWell) throw error;
    return undefined;
  }
}

async function tellMounted(
  { folder, source, view, files, bytes, generation, cleared }: MountFacts,
  log: Log,
  endpoint: ProcessEndpoint | undefined,
  options: OptionValues,
): Promise<void> {
  const metrics = endpoint === undefined ? undefined : formatHostPort(endpoint.address());
  if (cleared) log.info({ folder }, 'cleared away a dead mount that was there');
  log.info({ source, folder, view, files, bytes, generation, metrics }, 'mounted');
  const line = {
    event: 'ready',
    mount: folder,
    source,
    view,
    files,
    bytes,
    generation,
    ...(metrics === undefined ? {} : { metrics }),
    pid: process.pid,
  };
  if (isBackground()) tellReady(line);
  else await announce(line, options);
  await tell(log, 'ready', `${source} on ${folder}`);
}

/** Says that it is mounted: to a program as JSON, to a person as a sentence. */
async function announce(line: Readonly<Record<string, unknown>>, options: OptionValues): Promise<void> {
  if (options.json || process.stdout.isTTY !== true) return printJson(line);
  const { mount: folder, source, view, files, bytes, pid } = line;
  const what = `${formatCounted(Number(files), 'file')}, ${formatBytes(Number(bytes))}, ${view} view`;
  await writeStdout(`${printable(`${source} is mounted on ${folder}: ${what}; process ${pid}`)}\n`);
}

function tellEnd(end: MountEnd | undefined, log: Log, options: OptionValues): void {
  if (end === undefined) {
    log.warn({}, 'the mount was taken away');
    return;
  }
  const { how, byOthers, error, report } = end;
  if (options.stats) process.stderr.write(options.json ? `${JSON.stringify(report)}\n` : mountReportText(report));
  if (error !== undefined) throw revivedError(error);
  if (how === 'detached') log.warn({}, 'unmounted while files of it were open: they answer ENOTCONN');
  else log.info({ mounted: formatMs(report.mountedMs) }, byOthers ? 'unmounted by somebody else' : 'unmounted');
}

function settingsOf({ operands, options, origins }: CommandContext): MountSettings {
  return {
    url: operands[0]!,
    folder: operands[1]!,
    workingFolder: process.cwd(),
    view: options.view ?? 'raw',
    memoryBytes: options.memory ?? MEMORY_BYTES_DEFAULT,
    decoders: options.decoders ?? defaultDecoders(),
    verifyChecksums: options.verifyChecksums ?? true,
    prefetchDepth: options.prefetchDepth ?? PREFETCH_DEPTH_DEFAULT,
    maxGap: options.maxGap ?? 'auto',
    plain: process.env[PLAIN_VARIABLE] !== undefined,
    diskCache: cacheSettings(options, origins),
    allowOther: options.allowOther,
    access: sourceAccess(options, (path) => resolve(path)),
    lookMs: options.watchInterval,
  };
}

async function openEndpoint(
  { metrics: address }: OptionValues,
  notReady: () => string | undefined,
): Promise<ProcessEndpoint | undefined> {
  if (address === undefined || address === 'none') return undefined;
  return startEndpoint({ side: 'client', address, option: '--metrics', notReady });
}

/** In the background standard error is the file already. */
function mountLog({ logFile, logLevel, logFormat }: OptionValues): Log {
  const file = logFile === undefined || isBackground() ? undefined : openLogFile(logFile);
  return createLog({
    command: 'mount',
    ...(logLevel === undefined ? {} : { level: logLevel }),
    ...(logFormat === undefined ? {} : { format: logFormat }),
    ...(file === undefined ? {} : { write: (line: string) => void writeSync(file, line) }),
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

async function tell(log: Log, state: ServiceState, status: string): Promise<void> {
  try {
    await tellServiceManager(state, status);
  } catch (error) {
    log.warn({ err: error }, 'the service manager was not told');
  }
}
