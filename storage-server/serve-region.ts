/** Serves the files below some roots as one region over queue pairs: scan, region, listener, and their end. */
import { newServerCounters, type ServerCounters } from './counters.ts';
import { ServeError } from './errors.ts';
import { DEFAULT_LIMITS, type ServerLimits } from './limits.ts';
import { ALIGN_BYTES_MIN, ProtocolError } from './protocol/index.ts';
import { QueuePairServer } from './queue-pair-server.ts';
import { Region } from './region.ts';
import { type Skipped, scanRoots } from './scan-roots.ts';

export interface ServeOptions {
  /** Folders and files. One folder appears by its content, several under their base names. */
  readonly roots: readonly string[];
  /** Port 0 takes a free one. */
  readonly listen: { readonly host: string; readonly port: number };
  /** Alignment of files in the region, bytes: a power of two from 64 (default) to 2 MiB. */
  readonly alignBytes?: number;
  /** Serve files that are not named as Parquet too. */
  readonly all?: boolean;
  readonly limits?: Partial<ServerLimits>;
  /** Told of connections that are refused, dropped or fail, and of files that are skipped. */
  readonly log?: (event: string, peer: string, detail: string) => void;
}

/** What a running server serves. */
export interface ServedRegion {
  /** Hexadecimal. */
  readonly generation: string;
  readonly files: number;
  /** Bytes of all files. */
  readonly fileBytes: number;
  readonly regionBytes: number;
  readonly skipped: readonly Skipped[];
}

export interface RunningServer {
  address(): { readonly host: string; readonly port: number };
  region(): ServedRegion;
  counters(): Readonly<ServerCounters>;
  /** Drains for at most `drainMs`, then cuts what is left. */
  close(): Promise<void>;
}

/** Starts a server; it is listening when the promise resolves. Throws ServeError. */
export async function serveRegion(options: ServeOptions): Promise<RunningServer> {
  const limits = checkedLimits({ ...DEFAULT_LIMITS, ...options.limits });
  const log = options.log ?? (() => {});
  const { files, skipped } = await scanRoots(options.roots, { all: options.all ?? false });
  for (const { path, reason } of skipped) log('skipped', '', `${path}: ${reason}`);
  const region = makeRegion(files, options.alignBytes ?? ALIGN_BYTES_MIN);
  const counters = newServerCounters();
  const server = new QueuePairServer(region, limits, counters, log);
  const address = await server.listen(options.listen.host, options.listen.port);
  const served = {
    generation: Buffer.from(region.generation).toString('hex'),
    files: files.length,
    fileBytes: region.directory.entries.reduce((sum, entry) => sum + entry.length, 0),
    regionBytes: region.length,
    skipped,
  };
  return {
    address: () => ({ host: address.address, port: address.port }),
    region: () => served,
    counters: () => counters,
    close: () => server.close(),
  };
}

function makeRegion(files: ConstructorParameters<typeof Region>[0], alignBytes: number): Region {
  try {
    return new Region(files, alignBytes);
  } catch (cause) {
    if (cause instanceof ProtocolError) throw new ServeError('LIMIT', cause.message, { cause });
    throw cause;
  }
}

function checkedLimits(limits: ServerLimits): ServerLimits {
  for (const [name, value] of Object.entries(limits)) {
    if (!Number.isSafeInteger(value) || value < 1) throw new ServeError('LIMIT', `${name} is ${value}`);
  }
  return limits;
}
