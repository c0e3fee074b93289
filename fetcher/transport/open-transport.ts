/**
 * From a URL to a transport with everything that belongs to it: the source itself, stall timer, bound on concurrency,
 * retries, a disk cache. The path within the source comes back as the user wrote it (percent sequences decoded), globs and all.
 *
 *     rdma[s]://host[:port]/path     file:///path     http[s]://host[:port]/path[?query]     s3://bucket/path
 *
 * Behind the name of a packed region `!/` leads into it: file:///path/lake.qanat!/path.
 */
import type { Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import type { DiskCache } from '../disk-cache/disk-cache.ts';
import { FetchError } from '../errors.ts';
import type { S3Options } from '../objects/open-s3.ts';
import { ConcurrencyControl, concurrencyBounds } from './concurrency.ts';
import type { CredentialOptions } from './credentials.ts';
import type { Tell } from './events.ts';
import { FileTransport, type OnSkipped } from './file-transport.ts';
import { LatencyWindow } from './latency-window.ts';
import {
  CONNECT_MS,
  CONNECTIONS,
  DEFAULT_PORT,
  HEDGES_MAX,
  OUTSTANDING_MAX,
  QUEUE_DEPTH,
  READ_BYTES_MAX,
  STALL_MS,
  WINDOW_BYTES,
} from './limits.ts';
import { asFetchError, isGone } from './local-errors.ts';
import { ProgressLimit } from './progress-limit.ts';
import { QueuePairTransport } from './queue-pair-transport.ts';
import {
  newTransportActivity,
  newTransportCounters,
  type Transport,
  type TransportActivity,
  type TransportCounters,
} from './transport.ts';
import { type OnTransport, VerbsChoice, type VerbsOptions } from './verbs-choice.ts';
import { withDiskCache } from './with-disk-cache.ts';
import { hedgeRules, withHedge } from './with-hedge.ts';
import { withLimit } from './with-limit.ts';
import { withPackedRegion } from './with-packed-region.ts';
import { type RetryPolicy, withRetry } from './with-retry.ts';
import { withSharedLooks } from './with-shared-looks.ts';
import { withStallTimer } from './with-stall-timer.ts';

export interface OpenTransportOptions extends CredentialOptions {
  /** Reads under way at a time. */
  readonly concurrency?: number;
  /** Queue pairs to one server at most. */
  readonly connections?: number;
  /** Time to connect and shake hands, milliseconds; that of `stallMs` when only that is given. */
  readonly connectMs?: number;
  /** Time without progress, or without a connection, after which a read fails or is tried again, milliseconds. */
  readonly stallMs?: number;
  /** A CRC-32 over every frame's payload: a frame that was damaged on the way is fetched again. Off by default. */
  readonly checksum?: boolean;
  /** Largest READ, bytes. */
  readonly readBytesMax?: number;
  /** Bytes on the wire per queue pair. */
  readonly windowBytes?: number;
  /** READs on the wire per queue pair. */
  readonly outstandingMax?: number;
  /** READs of a storage server over RDMA or TCP; over RDMA where both ends can by default. */
  readonly rdma?: VerbsOptions;
  /** Told, once each, how READs of a storage server go: over which device, or why over TCP. */
  readonly onTransport?: OnTransport;
  readonly retry?: Partial<RetryPolicy>;
  /** Late reads are asked for a second time, under a budget (with-hedge.ts). Off by default; never for local files. */
  readonly hedge?: boolean;
  /** Told of what happens to reads besides bytes: retries, hedges, renewals, connections, changes of concurrency. */
  readonly onEvent?: Tell;
  /** Told when a server's new generation has taken the place of an earlier one: what is listed from then on is it. */
  readonly onGeneration?: (generation: string) => void;
  /** How buckets of S3 are reached. */
  readonly s3?: S3Options;
  /** Told, once each, of files of an HTTP server that nothing pins, so that changes may go unnoticed. */
  readonly onUnpinned?: OnSkipped;
  /** Told, once each, of local files and folders that listings leave out because they can't be looked at. */
  readonly onSkipped?: OnSkipped;
  /** Keeps what is read, for all sources that are given the same one; who opened it closes it, after them. */
  readonly diskCache?: DiskCache;
  /** Put around the source itself, inside retries: tests inject faults here. */
  readonly wrap?: (source: Transport) => Transport;
}

export interface OpenedTransport {
  readonly transport: Transport;
  /** Path or glob within the source; '' if the URL names none. */
  readonly path: string;
  readonly counters: Readonly<TransportCounters>;
  readonly activity?: Readonly<TransportActivity>;
  readonly diskCache?: DiskCache;
}

/**
 * Opens the source that a URL lies in. Nothing is sent yet: a server that is not there shows with the first
 * list or read. Throws FetchError BAD_URL, or for a local folder NOT_FOUND, DENIED or STORAGE.
 */
export async function openTransport(url: string, options: OpenTransportOptions = {}): Promise<OpenedTransport> {
  const counters = newTransportCounters();
  const activity = newTransportActivity();
  const { outside, inside } = splitPacked(url);
  const { source, path, identity } = await openSource(outside, options, counters, activity);
  const limited = withRules(options.wrap?.(source) ?? source, kindOf(url), options, counters, activity);
  const retried = withSharedLooks(withRetry(limited, counters, retryPolicy(options), options.onEvent));
  const packed = inside === undefined ? undefined : withPackedRegion(retried, path, counters);
  const { diskCache } = options;
  const opened = { path: inside === undefined ? path : decodePath(inside, url), counters, activity };
  if (diskCache === undefined) return { ...opened, transport: packed ?? retried };
  const name = packed === undefined ? identity : `packed+${identity}/${path}`;
  return { ...opened, transport: withDiskCache(packed ?? retried, diskCache, name, counters), diskCache };
}

/** How reads of a source go: each over a connection of its own, all over few that have rules of their own, or by no network. */
type SourceKind = 'apart' | 'shared' | 'local';

function kindOf(url: string): SourceKind {
  if (/^file:/i.test(url)) return 'local';
  return /^rdma:/i.test(url) ? 'shared' : 'apart';
}

/** Puts what all sources have around one: the progress timer, second requests, a bound on reads under way. */
function withRules(
  source: Transport,
  kind: SourceKind,
  { stallMs = STALL_MS, concurrency, hedge = false, onEvent: tell = () => {} }: OpenTransportOptions,
  counters: TransportCounters,
  activity: TransportActivity,
): Transport {
  const latencies = new LatencyWindow();
  const limit = new ProgressLimit(latencies, 2 * stallMs);
  activity.progressLimitMs = () => limit.milliseconds;
  const timed = withStallTimer(source, { limit, isApart: kind === 'apart', tell });
  const hedged = hedge && kind !== 'local' ? withHedge(timed, hedgeRules(latencies), counters, tell) : timed;
  const bounds = concurrencyBounds(concurrency, kind !== 'apart');
  const control = new ConcurrencyControl(bounds, (from, to, why) => {
    if (to > from) counters.concurrencyRaised++;
    else counters.concurrencyLowered++;
    tell({ kind: 'concurrency', from, to, why });
  });
  return withLimit(hedged, control, activity);
}

/** A packed file of an HTTP server may have a query behind it, as any file there. */
function splitPacked(url: string): { outside: string; inside?: string } {
  const form = /^https?:/i.test(url) ? /^(.*?\.qanat(?:\?[^!]*)?)!\/(.*)$/is : /^(.*?\.qanat)!\/(.*)$/is;
  const [, outside, inside] = form.exec(url) ?? [];
  return outside === undefined || inside === undefined ? { outside: url } : { outside, inside };
}

/** A source that is away counts as lost after as long as one that does not answer. */
function retryPolicy({ stallMs, retry = {} }: OpenTransportOptions): Partial<RetryPolicy> {
  return stallMs === undefined || retry.attempts !== undefined ? retry : { patienceMs: stallMs, ...retry };
}

/** What speaks HTTP is loaded when it is needed: it is half of all modules, in each thread that reads. */
async function openSource(
  url: string,
  options: OpenTransportOptions,
  counters: TransportCounters,
  activity: TransportActivity,
): Promise<{ source: Transport; path: string; identity: string }> {
  if (/^rdmas?:/.test(url)) {
    const { host, port, path, secure } = parseServerUrl(url);
    const source = new QueuePairTransport({ host, port, secure, counters, activity, ...queuePairOptions(options) });
    return { source, path, identity: `rdma${secure ? 's' : ''}://${host.toLowerCase()}:${port}` };
  }
  if (url.startsWith('file://')) {
    const { root, path } = await splitLocalPath(parseFileUrl(url));
    const identity = `file://${root === '/' ? '' : root}`;
    return { source: new FileTransport(root, counters, options.onSkipped), path, identity };
  }
  const pool = { ...poolOptions(options), counters, tell: options.onEvent };
  if (/^https?:\/\//i.test(url)) {
    const { onUnpinned } = options;
    const { openHttpSource } = await import('../objects/open-http.ts');
    return openHttpSource(url, { ...pool, onUnpinned });
  }
  if (/^s3:\/\//i.test(url)) {
    const { openS3Source } = await import('../objects/open-s3.ts');
    return openS3Source(url, { ...pool, s3: options.s3 });
  }
  throw new FetchError(
    'BAD_URL',
    `${url}: expected rdma://host:port/path, s3://bucket/path, https://host/path or file:///path`,
  );
}

function poolOptions(options: OpenTransportOptions) {
  const { concurrency, connectMs, stallMs } = options;
  return {
    // as many as there may be reads, so that none waits for another's; they are made when they are needed
    connections: concurrencyBounds(concurrency).most + HEDGES_MAX,
    connectMs: connectMs ?? stallMs ?? CONNECT_MS,
    stallMs: stallMs ?? STALL_MS,
    credentials: options,
  };
}

function queuePairOptions(options: OpenTransportOptions) {
  return {
    connections: options.connections ?? CONNECTIONS,
    connectMs: options.connectMs ?? options.stallMs ?? CONNECT_MS,
    stallMs: options.stallMs ?? STALL_MS,
    checksum: options.checksum ?? false,
    queueDepth: QUEUE_DEPTH,
    outstandingMax: options.outstandingMax ?? OUTSTANDING_MAX,
    readBytesMax: options.readBytesMax ?? READ_BYTES_MAX,
    windowBytes: options.windowBytes ?? WINDOW_BYTES,
    credentials: options,
    rdmaChoice: new VerbsChoice(options.rdma ?? {}, options.checksum ?? false, options.onTransport),
    ...(options.onGeneration === undefined ? {} : { onGeneration: options.onGeneration }),
    ...(options.onEvent === undefined ? {} : { tell: options.onEvent }),
  };
}

const SERVER_URL =
  /^rdma(?<s>s?):\/\/(?:\[(?<v6>[0-9a-fA-F:.]+)\]|(?<host>[^/:@[\]\s]+))(?::(?<port>\d{1,5}))?(?:\/(?<path>.*))?$/s;

// Not `new URL`: it would read "?" of a glob as a query and fold "..".
function parseServerUrl(url: string): { host: string; port: number; path: string; secure: boolean } {
  const parts = SERVER_URL.exec(url)?.groups;
  if (parts === undefined) throw new FetchError('BAD_URL', `${url}: expected rdma://host:port/path`);
  const port = Number(parts.port ?? DEFAULT_PORT);
  if (port < 1 || port > 65535) throw new FetchError('BAD_URL', `${url}: no port ${port}`);
  return { host: (parts.v6 ?? parts.host)!, port, path: decodePath(parts.path ?? '', url), secure: parts.s === 's' };
}

function parseFileUrl(url: string): string {
  const path = /^file:\/\/(?:localhost)?(\/.*)$/s.exec(url)?.[1];
  if (path === undefined) throw new FetchError('BAD_URL', `${url}: expected file:///absolute/path`);
  return decodePath(path, url);
}

function decodePath(path: string, url: string): string {
  try {
    return decodeURIComponent(path);
  } catch (cause) {
    throw new FetchError('BAD_URL', `${url}: a "%" that is meant as it stands is written "%25"`, { cause });
  }
}

const GLOB_CHARACTERS = /[*?[\]{}]/;

/**
 * The folder to open and the path within it: the folder itself with '', a file with its name, or the last folder in
 * front of the first segment with a glob character, unless a file of that very name exists.
 */
async function splitLocalPath(local: string): Promise<{ root: string; path: string }> {
  const whole = await statIfThere(local);
  if (whole?.isDirectory()) return { root: resolve(local), path: '' };
  const segments = local.split('/');
  const glob = whole === undefined ? segments.findIndex((segment) => GLOB_CHARACTERS.test(segment)) : -1;
  const at = glob < 0 ? segments.length - 1 : glob;
  const root = segments.slice(0, at).join('/') || '/';
  const found = await statIfThere(root);
  if (!found?.isDirectory()) {
    const missing = glob < 0 ? local : root;
    throw new FetchError('NOT_FOUND', `${missing} does not exist: ${await firstMissing(dirname(missing), missing)}`);
  }
  return { root: resolve(root), path: segments.slice(at).join('/') };
}

/** undefined for what does not exist. Throws FetchError DENIED or STORAGE for what can't be looked at. */
async function statIfThere(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    if (isGone(error)) return undefined;
    throw asFetchError(error, path);
  }
}

/** Where on the way to a path that does not exist the world ends. */
async function firstMissing(folder: string, below: string): Promise<string> {
  const found = await stat(folder).catch(() => undefined);
  if (found === undefined && folder !== dirname(folder)) return firstMissing(dirname(folder), folder);
  return found?.isDirectory() ? `there is no ${basename(below)} in ${folder}` : `${folder} is no folder`;
}
