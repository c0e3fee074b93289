/** `qanat serve`: a storage server that runs until it is told to stop; one JSON line on standard output when ready. */
import {
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
import { CommandError } from '../errors.ts';
import { isExposed } from '../exposure.ts';
import { createLog, type Log } from '../log.ts';
import type { LogLevel } from '../log-names.ts';
import type { OptionValues } from '../options.ts';
import { tellState } from '../service-manager.ts';
import { type CommandContext, checkedAlign, printJson } from './command.ts';
import { Hangups } from './hangups.ts';
import { PIN_MEMORY_SHARE } from './limits.ts';
import { startPinning } from './pinning.ts';

const LISTEN_DEFAULT: HostPort = { host: '127.0.0.1', port: 7400 };
const HTTP_DEFAULT: HostPort = { host: '127.0.0.1', port: 7480 };

export async function serve(context: CommandContext): Promise<void> {
  const { listen = LISTEN_DEFAULT, http = HTTP_DEFAULT, insecureListen = false, logLevel, logFormat } = context.options;
  const log = createLog({
    command: 'serve',
    ...(logLevel === undefined ? {} : { level: logLevel }),
    ...(logFormat === undefined ? {} : { format: logFormat }),
  });
  checkExposure(listen, insecureListen, log);
  checkS3(context.options, log);
  if (http === 'none') return serveRoots(context, listen, undefined, log);
  checkExposure(http, insecureListen, log);
  const readiness: Readiness = { reason: 'starting: looking at the files to serve', server: undefined };
  const endpoint = await startEndpoint({
    side: 'server',
    address: http,
    option: '--http',
    notReady: () => readiness.reason,
    others: (request, response) => readiness.server?.answerHttp(request, response) === true,
    limits: FILES_LIMITS,
  });
  try {
    await serveRoots(context, listen, { endpoint, readiness }, log);
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
  listen: HostPort,
  http: Http | undefined,
  log: Log,
): Promise<void> {
  const { all = false } = options;
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
    log: (event, peer, detail) => logEvent(log, event, peer, detail),
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
      files,
      bytes: fileBytes,
      generation,
      ...(rdma === undefined ? {} : { rdmaDevice: rdma.name }),
      pid: process.pid,
    });
    await tellState(log, 'ready', `serving on ${formatHostPort(server.address())}`);
    hangups.onHangup(async () => {
      await server.reloadKeys().catch((error) => log.error(`${error.message}; those that there were are still good`));
      if ((await server.republish()) === 'unchanged') log.info('SIGHUP: nothing has changed');
    });
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
  warning: 'warn',
  watch: 'warn',
  refused: 'warn',
  dropped: 'warn',
  failed: 'warn',
};

function logEvent(log: Log, event: string, peer: string, detail: string): void {
  log[LEVELS[event] ?? 'info']({ event, ...(peer === '' ? {} : { peer }) }, `${event}: ${detail}`);
}

function checkExposure(listen: HostPort, allowed: boolean, log: Log): void {
  if (!isExposed(listen)) return;
  const address = formatHostPort(listen);
  if (!allowed) {
    throw new CommandError(
      'USAGE',
      `${address} can be reached by other machines and there is no authentication yet: whoever can connect can read ` +
        'every file served. Add --insecure-listen if the network is trusted',
    );
  }
  log.warn(`${address} can be reached by other machines, and whoever can connect can read every file served`);
}

/** Other machines may only reach the S3 API when it asks for signatures, or when it is said that it need not. */
function checkS3({ s3, s3Keys, s3Bucket, s3Domain, insecureListen = false }: OptionValues, log: Log): void {
  if (s3 === undefined) {
    if (s3Keys === undefined && s3Bucket === undefined && s3Domain === undefined) return;
    throw new CommandError('USAGE', '--s3-keys, --s3-bucket and --s3-domain are about --s3, which is not given');
  }
  if (s3Keys === undefined) checkExposure(s3, insecureListen, log);
  else if (isExposed(s3)) log.warn(`${formatHostPort(s3)} can be reached by other machines: bytes are not encrypted`);
}

function s3Of({ s3, s3Keys, s3Bucket, s3Domain }: OptionValues): Pick<ServeOptions, 's3'> {
  if (s3 === undefined) return {};
  return {
    s3: {
      listen: s3,
      ...(s3Keys === undefined ? {} : { keysFile: s3Keys }),
      ...(s3Bucket === undefined ? {} : { bucket: s3Bucket }),
      ...(s3Domain === undefined ? {} : { domain: s3Domain }),
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
