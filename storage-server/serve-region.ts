/** Serves what a source has as one region over queue pairs, and publishes what it has later: the parts and their end. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Collector } from '../metrics/index.ts';
import type { Certificates } from './access/certificates.ts';
import { Guard } from './access/guard.ts';
import { bearerToken, Tokens } from './access/tokens.ts';
import { newServerCounters, type ServerCounters } from './counters.ts';
import { ServeError } from './errors.ts';
import { Door } from './http/door.ts';
import { answerFiles } from './http/files-door.ts';
import { DEFAULT_LIMITS, type ServerLimits } from './limits.ts';
import { Publisher, type PublishOutcome, tellSkipped } from './publisher.ts';
import { QueuePairServer } from './queue-pair-server.ts';
import type { Region } from './region.ts';
import { RegionHolder } from './region-holder.ts';
import { type Pinning, rootsSource } from './region-source.ts';
import { RootWatcher } from './root-watcher.ts';
import { type S3Options, startS3 } from './s3/start-s3.ts';
import type { Skipped } from './scan-roots.ts';
import { serverCollector } from './server-metrics.ts';
import { type DeviceFacts, type OpenVerbsDevice, openVerbsDevice, VerbsError } from './verbs/index.ts';
import { type VerbsFigures, VerbsService } from './verbs-service.ts';

export interface ServeOptions {
  /** Folders and files. One folder appears by its content, several under their base names. */
  readonly roots: readonly string[];
  /** Port 0 takes a free one. */
  readonly listen: { readonly host: string; readonly port: number };
  /** Alignment of files in the region, bytes: a power of two from 64 (default) to 2 MiB. */
  readonly alignBytes?: number;
  /** Serve files that are not named as Parquet too. */
  readonly all?: boolean;
  /** Publish changes of the roots by itself, looking at them at least every `intervalMs`. */
  readonly watch?: { readonly intervalMs?: number };
  /** Keep all files in memory. */
  readonly pin?: Pinning;
  /** Serve an S3 API too. */
  readonly s3?: S3Options;
  /** Queue pairs and the S3 API take TLS connections, and no others. */
  readonly certificates?: Certificates;
  /** File of tokens: queue pairs and HTTP let in who shows one, to what it is for. Everybody is let in without. */
  readonly tokensFile?: string;
  /** READs over RDMA too. */
  readonly rdma?: RdmaOptions;
  readonly limits?: Partial<ServerLimits>;
  /** Told of connections that are refused, dropped or fail, of files that are skipped, and of publications. */
  readonly log?: (event: string, peer: string, detail: string) => void;
}

export interface RdmaOptions {
  /** Name of the device; without one, the first that works. */
  readonly device?: string;
  /** Whether the server does not start without it; else it is logged that there is none. */
  readonly required: boolean;
  /** Bytes of memory that a region may take in it. */
  readonly budgetBytes: number;
  /** Gives up while files are read into memory. */
  readonly signal?: AbortSignal;
  /** Another device than those of the system. */
  readonly open?: OpenVerbsDevice;
}

/** What a running server serves now. */
export interface ServedRegion {
  /** Hexadecimal. */
  readonly generation: string;
  readonly files: number;
  /** Bytes of all files. */
  readonly fileBytes: number;
  readonly regionBytes: number;
  /** Bytes of memory that files are pinned in. */
  readonly pinnedBytes: number;
  readonly skipped: readonly Skipped[];
}

export interface RunningServer {
  address(): { readonly host: string; readonly port: number };
  region(): ServedRegion;
  counters(): Readonly<ServerCounters>;
  /** The RDMA device in use, and what is registered with it. */
  rdma(): (DeviceFacts & VerbsFigures) | undefined;
  /** For the registry of a server's metrics. */
  readonly collectMetrics: Collector;
  /** Where the S3 API is, if it is served, and its buckets. */
  readonly s3: { readonly host: string; readonly port: number; readonly buckets: readonly string[] } | undefined;
  /** Reads the keys again that requests to the S3 API are signed with. Throws ServeError KEYS and changes nothing. */
  reloadKeys(): Promise<void>;
  /**
   * Reads the tokens again; who was let in with one that is not there any more, or is for something else, is cut off.
   * Throws ServeError TOKENS and changes nothing.
   */
  reloadTokens(): Promise<void>;
  readonly asksForTokens: boolean;
  /** Whether a request shows what may read metrics. */
  admitsToMetrics(request: IncomingMessage): boolean;
  /**
   * Answers an HTTP request for `/files/<path>` or `/region`; false, and nothing done, if it is about something else.
   * May be called by any listener, which sees to the bounds of requests and connections.
   */
  answerHttp(request: IncomingMessage, response: ServerResponse): boolean;
  /**
   * Looks at the roots again and publishes a new generation if anything has changed. Never rejects: what fails is
   * logged, and what was served before goes on being served.
   */
  republish(): Promise<PublishOutcome>;
  /** Drains for at most `drainMs`, then cuts what is left. */
  close(): Promise<void>;
}

/** Starts a server; it is listening when the promise resolves. Throws ServeError. */
export async function serveRegion(options: ServeOptions): Promise<RunningServer> {
  const limits = checkedLimits({ ...DEFAULT_LIMITS, ...options.limits });
  const log = options.log ?? (() => {});
  const counters = newServerCounters();
  const source = rootsSource(options.roots, options);
  let publisher: Publisher | undefined;
  let verbs: VerbsService | undefined;
  const watcher =
    options.watch === undefined
      ? undefined
      : new RootWatcher({ ...options.watch, log, onDue: () => void publisher?.republish() });
  try {
    const warn = (text: string): void => log('warning', '', text);
    const { tokensFile, certificates } = options;
    const tokens = tokensFile === undefined ? undefined : await Tokens.read(tokensFile, warn);
    watcher?.beginLook();
    const first = await source.load(undefined, watcher?.onPlace ?? (() => {}));
    tellSkipped(first.skipped, [], log);
    verbs = options.rdma === undefined ? undefined : await openVerbs(options.rdma, first.region, log);
    const regions = new RegionHolder(first.region, counters);
    const guard = new Guard(regions, tokens);
    const server = new QueuePairServer({ regions, guard, certificates, limits, counters, log, verbs });
    const address = await server.listen(options.listen.host, options.listen.port);
    const publishing = new Publisher(source, regions, first, {
      counters,
      log,
      watcher,
      prepare: async (region) => verbs?.prepareOrLog(region),
    });
    publisher = publishing;
    const onStale = (): void => watcher?.poke();
    server.onStale = onStale;
    const { stallMs } = limits;
    const door = new Door({ regions, guard, files: server.files, stallMs, onStale, log });
    const s3 =
      options.s3 === undefined
        ? undefined
        : await startS3({ ...options.s3, certificates, warn }, options.roots, door).catch(async (error) => {
            await server.close();
            throw error;
          });
    const collectAccess = guard.counters.collector(certificates);
    const collectServer = serverCollector(server, regions, counters, verbs);
    watcher?.endLook(true);
    return {
      address: () => ({ host: address.address, port: address.port }),
      region: () => summary(regions.current, publishing.skipped),
      counters: () => counters,
      rdma: () => (verbs === undefined ? undefined : { ...verbs.device.facts, ...verbs.figures }),
      collectMetrics(samples) {
        collectServer(samples);
        door.counters.collect(samples);
        collectAccess(samples);
      },
      s3: s3?.place,
      reloadKeys: async () => s3?.reloadKeys(),
      async reloadTokens() {
        if (tokensFile !== undefined) guard.replace(await Tokens.read(tokensFile, warn));
      },
      asksForTokens: guard.isAsking,
      admitsToMetrics: ({ headers }) => guard.admit(bearerToken(headers.authorization), 'http')?.seesMetrics === true,
      answerHttp: (request, response) => answerFiles(door, request, response),
      republish: () => publishing.republish(),
      async close() {
        watcher?.close();
        publishing.close();
        s3?.server.stop();
        await Promise.all([server.close(), door.close(limits.drainMs)]);
        await verbs?.close();
        s3?.server.end();
      },
    };
  } catch (error) {
    watcher?.close();
    await verbs?.close();
    throw error;
  }
}

/** Opens the device and registers the first region. Throws ServeError RDMA if it is required and can't be had. */
async function openVerbs(
  { device, required, budgetBytes, signal, open = openVerbsDevice }: RdmaOptions,
  region: Region,
  log: (event: string, peer: string, detail: string) => void,
): Promise<VerbsService | undefined> {
  let service: VerbsService | undefined;
  try {
    service = new VerbsService({ device: await open(device), budgetBytes, log });
    await service.prepare(region, signal);
    return service;
  } catch (error) {
    await service?.close();
    const isOurs = error instanceof VerbsError || error instanceof ServeError;
    if (!isOurs || signal?.aborted === true) throw error;
    if (required) throw new ServeError('RDMA', error.reason, { cause: error });
    log('rdma', '', `not used: ${error.reason}`);
    return undefined;
  }
}

function summary(region: Region, skipped: readonly Skipped[]): ServedRegion {
  const { entries } = region.directory;
  return {
    generation: Buffer.from(region.generation).toString('hex'),
    files: entries.length,
    fileBytes: entries.reduce((sum, entry) => sum + entry.length, 0),
    regionBytes: region.length,
    pinnedBytes: region.pinned?.bytes ?? 0,
    skipped,
  };
}

function checkedLimits(limits: ServerLimits): ServerLimits {
  for (const [name, value] of Object.entries(limits)) {
    if (!Number.isSafeInteger(value) || value < 1) throw new ServeError('LIMIT', `${name} is ${value}`);
  }
  return limits;
}
