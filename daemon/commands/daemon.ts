/**
 * `qanat daemon`: one engine, named sources, scans over HTTP, metrics; until it is told to stop. One JSON line on
 * standard output when ready, logs on standard error. SIGHUP reads the configuration again: what can change changes,
 * what can't is said, and a configuration with a mistake changes nothing.
 */
import { formatBytes, formatHostPort } from '../argument.ts';
import { type DaemonConfig, type Given, loadConfig, planReload } from '../config/config.ts';
import { formatDuration } from '../config/setting.ts';
import { type ProcessEndpoint, startEndpoint } from '../endpoint.ts';
import { CommandError } from '../errors.ts';
import { ApiServer } from '../http/api-server.ts';
import { NamedSources } from '../http/named-sources.ts';
import { ScanService } from '../http/scan-service.ts';
import { createLog, type Log } from '../log.ts';
import { ClientMetrics } from '../scan/client-metrics.ts';
import { ScanEngine } from '../scan/engine.ts';
import { tellState } from '../service-manager.ts';
import { type CommandContext, printJson } from './command.ts';
import { Hangups } from './hangups.ts';
import type { Interruption } from './interruption.ts';

export async function daemon({ options, origins, interruption }: CommandContext): Promise<void> {
  const given: Given = { options, origins };
  const hangups = new Hangups();
  const config = await loadConfig(given);
  const { settings } = config;
  const log = createLog({ command: 'daemon', level: settings.logLevel, format: settings.logFormat });
  const readiness: { reason: string | undefined } = { reason: 'starting' };
  const endpoint =
    settings.metrics === 'none'
      ? undefined
      : await startEndpoint({
          side: 'client',
          address: settings.metrics,
          option: '--metrics',
          notReady: () => readiness.reason,
        });
  try {
    await withService(config, log, endpoint, async (service, api) => {
      const reload = new Reloading(given, config, log, service, api);
      // From here on there is something to drain, which has a bound of its own.
      interruption.bounded = false;
      readiness.reason = undefined;
      await announce(config, log, api, endpoint);
      hangups.onHangup(() => void reload.run());
      try {
        await stopped(interruption, service.engine);
      } finally {
        readiness.reason = 'stopping';
        await reload.end();
        await drain(log, service, api);
      }
    });
  } finally {
    await endpoint?.close();
    hangups.dispose();
  }
  log.info('stopped');
}

/** Everything that scans share, made for `work` and taken apart after it. */
async function withService(
  { settings, sources: configs }: DaemonConfig,
  log: Log,
  endpoint: ProcessEndpoint | undefined,
  work: (service: ScanService, api: ApiServer) => Promise<void>,
): Promise<void> {
  const metrics = endpoint === undefined ? undefined : new ClientMetrics(endpoint.registry);
  const { memory, decoders, verifyChecksums } = settings;
  const engine = new ScanEngine({ memoryBytes: memory, decoders, verifyChecksums });
  metrics?.addEngine(engine);
  const sources = new NamedSources(log, (source) => metrics?.addSource(source));
  try {
    sources.apply(configs);
    const service = new ScanService(engine, sources, settings);
    const api = await ApiServer.start(service, log, settings.listen);
    try {
      await work(service, api);
    } finally {
      await api.close();
    }
  } finally {
    await engine.close();
    await sources.close();
  }
}

async function announce(
  { settings, sources, file }: DaemonConfig,
  log: Log,
  api: ApiServer,
  endpoint: ProcessEndpoint | undefined,
): Promise<void> {
  const http = formatHostPort(api.address());
  const metrics = endpoint === undefined ? undefined : formatHostPort(endpoint.address());
  if (sources.size === 0 && !settings.allowLocations) {
    log.warn('there are no sources: name some in the file, or with --source name=location');
  }
  const { memory, decoders } = settings;
  log.info({ http, metrics, config: file, sources: sources.size, memory: formatBytes(memory), decoders }, 'ready');
  await printJson({
    event: 'ready',
    http,
    ...(metrics === undefined ? {} : { metrics }),
    sources: [...sources.keys()],
    pid: process.pid,
  });
  await tellState(log, 'ready', `scans on ${http}`);
}

/** Resolves at SIGTERM or Ctrl-C. Throws what ended a decoder thread: who can't scan is better started again. */
function stopped({ signal }: Interruption, engine: ScanEngine): Promise<void> {
  return new Promise((resolve, reject) => {
    engine.streams.failed.then(reject);
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

async function drain(log: Log, service: ScanService, api: ApiServer): Promise<void> {
  const { drainTimeout } = service.settings;
  log.info({ scans: service.running, within: formatDuration(drainTimeout) }, 'stopping: no new scans');
  await tellState(log, 'stopping', 'waiting for scans to end');
  api.stopListening();
  const { cut } = await service.drain(drainTimeout);
  if (cut > 0) log.warn({ scans: cut }, 'ended scans that were still running');
}

/** Reads the configuration again, one at a time; a wish that comes meanwhile is done after it. */
class Reloading {
  readonly #given: Given;
  readonly #log: Log;
  readonly #service: ScanService;
  readonly #api: ApiServer;
  #config: DaemonConfig;
  #turn: Promise<void> = Promise.resolve();
  #waiting = false;
  #ended = false;

  constructor(given: Given, config: DaemonConfig, log: Log, service: ScanService, api: ApiServer) {
    this.#given = given;
    this.#config = config;
    this.#log = log;
    this.#service = service;
    this.#api = api;
  }

  run(): Promise<void> {
    if (this.#waiting || this.#ended) return this.#turn;
    this.#waiting = true;
    this.#turn = this.#turn.then(async () => {
      this.#waiting = false;
      if (!this.#ended) await this.#reload();
    });
    return this.#turn;
  }

  async end(): Promise<void> {
    this.#ended = true;
    await this.#turn;
  }

  async #reload(): Promise<void> {
    const log = this.#log;
    await tellState(log, 'reloading', 'reading the configuration again');
    try {
      const { config, changed, kept } = planReload(this.#config, await loadConfig(this.#given));
      for (const { path, before, after } of kept) {
        log.warn({ setting: path, holds: before, file: after }, 'only a restart changes this setting');
      }
      for (const { path, before, after } of changed) log.info({ setting: path, before, after }, 'changed');
      this.#config = config;
      this.#service.settings = config.settings;
      this.#service.sources.apply(config.sources);
      this.#api.applySettings();
      log.level = config.settings.logLevel;
      log.info({ changed: changed.length, kept: kept.length }, 'reloaded');
    } catch (error) {
      if (!(error instanceof CommandError)) log.error({ err: error }, 'a bug of Qanat: not reloaded');
      else {
        const problems = error.details.length > 0 ? { problems: error.details } : {};
        log.error(problems, `not reloaded, everything stays as it was: ${error.message}`);
      }
    }
    await tellState(log, 'ready', `scans on ${formatHostPort(this.#api.address())}`);
  }
}
