/**
 * POST /v1/scan: rows of a source as an Arrow IPC stream, at the pace of the client. Until the first rows are there an
 * error is answered with a status; after that it can only be told by breaking the connection off, which no client takes
 * for the end of a stream. When the client goes away the scan ends, and what it had in memory goes back to the pool.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { FetchError, type FileVersion } from '../../fetcher/index.ts';
import { parseGlob, parseLocation, type Source } from '../../vfs/index.ts';
import { formatCounted } from '../argument.ts';
import { CommandError } from '../errors.ts';
import { ArrowStreamSink } from '../output/arrow-stream.ts';
import { Scan } from '../scan/scan.ts';
import type { Batch } from '../scan/segments.ts';
import { HttpError } from './http-error.ts';
import type { SourceLease } from './named-sources.ts';
import { cutOff, ResponseOutput } from './response-output.ts';
import type { ScanBody } from './scan-body.ts';
import type { ScanService } from './scan-service.ts';

const ARROW_STREAM = 'application/vnd.apache.arrow.stream';

/** What the log says of a scan. */
export interface ScanOutcome {
  readonly outcome: 'complete' | 'failed' | 'client gone' | 'client stalled' | 'stopped';
  readonly rows: number;
  readonly bytes: number;
  readonly error?: unknown;
}

/** Runs a scan into the response. Throws only before anything was sent; the response is the caller's then. */
export async function answerScan(
  service: ScanService,
  body: ScanBody,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<ScanOutcome> {
  // a cut answer of HTTP/1.0 ends as a whole one does
  if (request.httpVersionMajor === 1 && request.httpVersionMinor === 0) {
    throw new HttpError('VERSION', 'scans take HTTP/1.1');
  }
  const running = service.admit();
  const onGone = (): void => running.abort();
  const onStop = (): void => {
    // a client that takes nothing would keep it waiting
    if (running.isStopped && response.headersSent) cutOff(response);
  };
  response.on('close', onGone);
  running.signal.addEventListener('abort', onStop, { once: true });
  if (response.destroyed) onGone();
  const output = new ResponseOutput(response, service.settings.clientTimeout);
  let lease: SourceLease | undefined;
  let scan: Scan | undefined;
  let error: unknown;
  try {
    lease = await leaseFor(service, body);
    scan = await Scan.open(service.engine, lease.source, { ...scanOptions(body, lease), signal: running.signal });
    await pump(scan, output, response);
    await output.finish();
  } catch (cause) {
    error = cause;
  } finally {
    response.off('close', onGone);
    await scan?.close();
    lease?.release();
    running.end();
  }
  const rows = scan?.report().rows ?? 0;
  const { bytes } = output;
  if (error === undefined) return { outcome: 'complete', rows, bytes };
  if (output.isStalled) return { outcome: 'client stalled', rows, bytes };
  if (running.isStopped) {
    if (response.headersSent) return { outcome: 'stopped', rows, bytes };
    throw new HttpError('STOPPING', 'the daemon ended before there was a row');
  }
  if (response.destroyed || isGone(error)) return { outcome: 'client gone', rows, bytes };
  if (!response.headersSent) throw error;
  cutOff(response);
  return { outcome: 'failed', rows, bytes, error };
}

const isGone = (error: unknown): boolean => error instanceof CommandError && error.code === 'OUTPUT_CLOSED';

/** The first batch comes before the head of the answer, so that what is wrong with a file's beginning has a status. */
async function pump(scan: Scan, output: ResponseOutput, response: ServerResponse): Promise<void> {
  const sink = new ArrowStreamSink(scan.schema, (batch) => taken(scan, batch), output);
  let batch = await scan.nextBatch();
  try {
    response.writeHead(200, {
      'Content-Type': ARROW_STREAM,
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
    });
    await sink.begin();
    while (batch !== undefined) {
      const current = batch;
      batch = undefined;
      await sink.write(current);
      batch = await scan.nextBatch();
    }
    await sink.end();
  } finally {
    batch?.release();
  }
}

/** The rows as a copy of their own: a client that is slow to take them holds none of the pool. */
function taken(scan: Scan, batch: Batch): ReturnType<Scan['toArrow']> {
  try {
    return scan.toArrow(batch);
  } finally {
    batch.release();
  }
}

async function leaseFor(
  { sources, settings }: ScanService,
  { source, location, path }: ScanBody,
): Promise<SourceLease> {
  if (source !== undefined) return sources.acquire(source);
  if (path !== undefined) throw new HttpError('REQUEST', 'path: belongs to "source"; a location has one of its own');
  if (!settings.allowLocations) {
    throw new HttpError('LOCATION', 'this daemon scans its sources only; allow-locations: true allows any location');
  }
  if (parseLocation(location!).relativeTo !== undefined) {
    throw new HttpError('REQUEST', 'location: expected an absolute path or a URL, found a relative path');
  }
  return sources.borrow(location!, { ...settings, location: location!, folder: '/' });
}

function scanOptions(body: ScanBody, { config, source }: SourceLease) {
  const { columns, limit, batchRows, preserveOrder, dictionary, path } = body;
  return {
    prefetchDepth: body.prefetchDepth ?? config.prefetchDepth,
    maxGap: body.maxGap ?? config.maxGap,
    ...(columns === undefined ? {} : { columns }),
    ...(limit === undefined ? {} : { limit }),
    ...(batchRows === undefined ? {} : { batchRows }),
    ...(preserveOrder === undefined ? {} : { preserveOrder }),
    ...(dictionary === undefined ? {} : { dictionary }),
    ...(path === undefined ? {} : { files: (files: readonly FileVersion[]) => filesAt(path, files, source) }),
  };
}

/** Those of a source's files that a path means: the one of that name, those of that folder, those that a glob matches. */
function filesAt(path: string, files: readonly FileVersion[], source: Source): readonly FileVersion[] {
  const name = path.replace(/^\/+|\/+$/g, '');
  const glob = parseGlob(name);
  const found = files.filter((file) => {
    const within = source.pathWithin(file.path);
    return within === name || within.startsWith(`${name}/`) || glob.matches(within);
  });
  if (found.length > 0) return found;
  const what = `no file of the source is ${JSON.stringify(path)}`;
  throw new FetchError(
    'NOT_FOUND',
    `${what}; it has ${formatCounted(files.length, 'file')}, /v1/sources/{name}/files lists them`,
  );
}
