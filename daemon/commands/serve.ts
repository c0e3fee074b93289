/** `qanat serve`: a storage server that runs until it is told to stop; one JSON line on standard output when ready. */
import {
  CERTIFICATES_LOOK_MS,
  type Certificates,
  FILES_LIMITS,
  type RunningServer,
  ServeError,
  type ServeErrorCode,
  type ServeOptions,
  type ServerLimits,
  serveRegion,
} from '../../storage-server/index.ts';
import { formatBytes, formatHostPort, type HostPort } from '../argument.ts';
import { type ProcessEndpoint, startEndpoint } from '../endpoint.ts';
import { createLog, type Log } from '../log.ts';
import type { LogLevel } from '../log-names.ts';
import type { OptionValues } from '../options.ts';
import { tellState } from '../service-manager.ts';
import { type CommandContext, checkedAlign, printJson } from './command.ts';
import { Hangups } from './hangups.ts';
import { PIN_MEMORY_SHARE } from './limits.ts';
import { limitPeerLines } from './log-limit.ts';
import { startPinning } from './pinning.ts';
import { checkAccess, loadCertificates } from './server-access.ts';

const LISTEN_DEFAULT: HostPort = { host: '127.0.0.1', port: 7400 };
const HTTP_DEFAULT: HostPort = { host: '127.0.0.1', port: 7480 };

export async function serve(context: CommandContext): Promise<void> {
  const { listen = LISTEN_DEFAULT, http = HTTP_DEFAULT, logLevel, logFormat } = context.options;
  const log = createLog({
    command: 'serve',
    ...(logLevel === undefined ? {} : { level: logLevel }),
    ...(logFormat === undefined ? {} : { format: logFormat }),
  });
  checkAccess(context.options, { listen, http }, log);
  const tell = (event: string, peer: string, detail: string): void => logEvent(log, event, peer, detail);
  const certificates = await loadCertificates(context.options, tell);
  try {
    await serveOn(context, { listen, http, certificates, log });
  } finally {
    certificates?.close();
  }
}

interface Doors {
  readonly listen: HostPort;
  readonly http: HostPort | 'none';
  readonly certificates: Certificates | undefined;
  readonly log: Log;
}

async function serveOn(context: CommandContext, doors: Doors): Promise<void> {
  const { tokens, hostNames } = context.options;
  const { http, certificates } = doors;
  if (http === 'none') return serveRoots(context, doors, undefined);
  const readiness: Readiness = { reason: 'starting: looking at the files to serve', server: undefined };
  const endpoint = await startEndpoint({
    side: 'server',
    address: http,
    option: '--http',
    notReady: () => readiness.reason,
    others: (request, response) => readiness.server?.answerHttp(request, response) === true,
    access: {
      // a page that does not know a token gets nothing by any name
      hostNames: tokens === undefined ? (hostNames ?? []) : 'any',
      ...(tokens === undefined ? {} : { admits: (request) => readiness.server?.admitsToMetrics(request) === true }),
      ...(certificates === undefined ? {} : { secure: certificates }),
    },
    limits: FILES_LIMITS,
  });
  try {
    await serveRoots(context, doors, { endpoint, readiness });
  } finally {
    await endpoint.close();
  }
}

/** Whether the server is ready, and why it is not. */
interface Readiness {
  reason: string | undefined;
  /** What answers requests for files, when there is something to serve. */
  server: RunningServer | undefined;
}

interface Http {
  readonly endpoint: ProcessEndpoint;
  readonly readiness: Readiness;
}

async function serveRoots(
  { operands, options, interruption }: CommandContext,
  { listen, certificates, log }: Doors,
  http: Http | undefined,
): Promise<void> {
  const { all = false, tokens } = options;
  const align = checkedAlign(options);
  const pinning = startPinning(options, interruption.signal);
  const hangups = new Hangups();
  const server = await start({
    roots: operands,
    listen,
    all,
    limits: limitsOf(options),
    ...(align === undefined ? {} : { alignBytes: align }),
    ...(pinning === undefined ? {} : { pin: pinning.pin }),
    ...rdmaOf(options, interruption.signal),
    ...watchOf(options),
    ...s3Of(options),
    ...(certificates === undefined ? {} : { certificates }),
    ...(tokens === undefined ? {} : { tokensFile: tokens }),
    log: limitPeerLines((event, peer, detail) => logEvent(log, event, peer, detail)),
  }).finally(() => pinning?.hide());
  // From here on there is something to drain; closing is bounded by the server's own limit.
  interruption.bounded = false;
  const { files, fileBytes, generation } = server.region();
  if (pinning !== undefined) {
    const { pinnedBytes } = server.region();
    log.info(`pinned ${formatBytes(pinnedBytes)} of a budget of ${formatBytes(pinning.pin.budgetBytes)}`);
  }
  const rdma = server.rdma();
  if (rdma !== undefined) {
    const { name, port, gidKind, gid, registeredBytes } = rdma;
    log.info(`RDMA device ${name}, port ${port}, ${gidKind} ${gid}: ${formatBytes(registeredBytes)} registered`);
  }
  if (files === 0) {
    log.warn(`no file to serve in ${operands.join(', ')}${all ? '' : ' (--all serves files of any name)'}`);
  }
  try {
    http?.endpoint.registry.addCollector(server.collectMetrics);
    if (http !== undefined) http.readiness.server = server;
    setReadiness(http, undefined);
    await printJson({
      event: 'ready',
      rdma: formatHostPort(server.address()),
      ...(http === undefined ? {} : { http: formatHostPort(http.endpoint.address()) }),
      ...(server.s3 === undefined ? {} : { s3: formatHostPort(server.s3), buckets: server.s3.buckets }),
      ...(certificates === undefined ? {} : { tls: true }),
      ...(tokens === undefined ? {} : { tokens: true }),
      files,
      bytes: fileBytes,
      generation,
      ...(rdma === undefined ? {} : { rdmaDevice: rdma.name }),
      pid: process.pid,
    });
    await tellState(log, 'ready', `serving on ${formatHostPort(server.address())}`);
    hangups.onHangup(async () => {
      const keep = (error: Error): void => log.error(`${error.message}; those that there were are still good`);
      await Promise.all([server.reloadKeys().catch(keep), server.reloadTokens().catch(keep), certificates?.reload()]);
      if ((await server.republish()) === 'unchanged') log.info('SIGHUP: nothing has changed');
    });
    if (options.watch === true || options.watchInterval !== undefined) certificates?.watch(CERTIFICATES_LOOK_MS);
    await aborted(interruption.signal);
    setReadiness(http, 'stopping');
    log.info('stopping: no new connections, sending what was asked for');
    await tellState(log, 'stopping', 'sending what was asked for');
  } finally {
    await server.close();
    hangups.dispose();
  }
  const { connectionsTotal, reads, bytesSent } = server.counters();
  log.info(`stopped after ${connectionsTotal} connections, ${reads} reads, ${bytesSent} bytes`);
}

function setReadiness(http: Http | undefined, reason: string | undefined): void {
  if (http !== undefined) http.readiness.reason = reason;
}

const HINTS: Partial<Record<ServeErrorCode, string>> = {
  RDMA: 'see `qanat serve --help`; --rdma-device auto goes on without, --rdma-device none never asks',
  LISTEN: 'choose another with --listen, port 0 takes a free one',
  LISTEN_S3: 'choose another with --s3, port 0 takes a free one',
  PIN: 'raise it with --pin <bytes>, serve fewer files, or serve them from storage without --pin',
};

async function start(options: ServeOptions): Promise<RunningServer> {
  try {
    return await serveRegion(options);
  } catch (error) {
    const hint = error instanceof ServeError ? HINTS[error.code] : undefined;
    if (!(error instanceof ServeError) || hint === undefined) throw error;
    throw new ServeError(error.code, `${error.reason}: ${hint}`, { cause: error });
  }
}

/** Events of the server that are more, or less, than information. */
const LEVELS: Readonly<Record<string, LogLevel>> = {
  bug: 'error',
  listener: 'error',
  'not published': 'error',
  'certificate not taken over': 'error',
  warning: 'warn',
  watch: 'warn',
  refused: 'warn',
  dropped: 'warn',
  failed: 'warn',
};

function logEvent(log: Log, event: string, peer: string, detail: string): void {
  log[LEVELS[event] ?? 'info']({ event, ...(peer === '' ? {} : { peer }) }, `${event}: ${detail}`);
}

function s3Of({ s3, s3Keys, s3Bucket, s3Domain, hostNames }: OptionValues): Pick<ServeOptions, 's3'> {
  if (s3 === undefined) return {};
  return {
    s3: {
      listen: s3,
      ...(s3Keys === undefined ? {} : { keysFile: s3Keys }),
      ...(s3Bucket === undefined ? {} : { bucket: s3Bucket }),
      ...(s3Domain === undefined ? {} : { domain: s3Domain }),
      ...(hostNames === undefined ? {} : { hostNames }),
    },
  };
}

/** A device that is named has to be there; `auto` takes what there is. */
function rdmaOf({ rdmaDevice, pin }: OptionValues, signal: AbortSignal): Pick<ServeOptions, 'rdma'> {
  if (rdmaDevice === undefined || rdmaDevice === 'none') return {};
  const budgetBytes =
    pin === undefined || pin === 'auto' ? Math.floor(process.availableMemory() * PIN_MEMORY_SHARE) : pin;
  return rdmaDevice === 'auto'
    ? { rdma: { required: false, budgetBytes, signal } }
    : { rdma: { device: rdmaDevice, required: true, budgetBytes, signal } };
}

function watchOf({ watch = false, watchInterval }: OptionValues): Pick<ServeOptions, 'watch'> {
  if (watchInterval !== undefined) return { watch: { intervalMs: watchInterval } };
  return watch ? { watch: {} } : {};
}

function limitsOf(options: OptionValues): Partial<ServerLimits> {
  const { maxConnections, maxOutstanding, maxRead, maxBuffered, sendMemory, drainTimeout, stallTimeout } = options;
  return {
    ...(maxConnections === undefined ? {} : { connectionsMax: maxConnections }),
    ...(maxOutstanding === undefined ? {} : { outstandingMax: maxOutstanding }),
    ...(maxRead === undefined ? {} : { readBytesMax: maxRead }),
    ...(maxBuffered === undefined ? {} : { burstsMax: Math.floor(maxBuffered / 2 ** 20) }),
    ...(sendMemory === undefined ? {} : { slabsMax: Math.floor(sendMemory / 2 ** 20) }),
    ...(drainTimeout === undefined ? {} : { drainMs: drainTimeout }),
    ...(stallTimeout === undefined ? {} : { stallMs: stallTimeout }),
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
