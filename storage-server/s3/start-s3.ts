/** Starts the S3 API of a server: buckets, keys and listener put together. */
import { isLoopback } from '../../metrics/index.ts';
import type { Certificates } from '../access/certificates.ts';
import type { Door } from '../http/door.ts';
import { FILES_LIMITS, type FilesLimits } from '../http/limits.ts';
import { Buckets } from './buckets.ts';
import { readKeysFile, type SigningKeys } from './keys.ts';
import { S3Server } from './s3-server.ts';

export interface S3Options {
  readonly listen: { readonly host: string; readonly port: number };
  /** File of the keys that requests have to be signed with; everybody is let in without. */
  readonly keysFile?: string;
  /** Name of the bucket of the one root that is served. */
  readonly bucket?: string;
  /** Domain below which the names of buckets are hosts; `localhost` when absent. */
  readonly domain?: string;
  /** Names that it may be asked for by on an address of this machine alone while everybody is let in, besides its own. */
  readonly hostNames?: readonly string[];
  readonly limits?: Partial<FilesLimits>;
}

interface S3Surroundings {
  /** Connections are plain without. */
  readonly certificates: Certificates | undefined;
  readonly warn: (text: string) => void;
}

/** An S3 API that is served. */
export interface RunningS3 {
  readonly server: S3Server;
  readonly place: { readonly host: string; readonly port: number; readonly buckets: readonly string[] };
  /** Reads the keys again. Throws ServeError KEYS; those that there were stay. */
  reloadKeys(): Promise<void>;
}

/** Starts it; it is listening when the promise resolves. Throws ServeError LISTEN_S3, NAMES or KEYS. */
export async function startS3(
  {
    listen,
    keysFile,
    bucket,
    domain = 'localhost',
    hostNames = [],
    limits,
    certificates,
    warn,
  }: S3Options & S3Surroundings,
  roots: readonly string[],
  door: Door,
): Promise<RunningS3> {
  const buckets = new Buckets(roots, bucket);
  let keys: SigningKeys | undefined = keysFile === undefined ? undefined : await readKeysFile(keysFile, warn);
  const own = isLoopback(listen.host) ? [...hostNames, domain.toLowerCase()] : undefined;
  const options = { door, buckets, keys: () => keys, domain: domain.toLowerCase(), hostNames: own };
  const server = new S3Server(options, certificates, { ...FILES_LIMITS, ...limits });
  const { address: host, port } = await server.listen(listen.host, listen.port);
  return {
    server,
    place: { host, port, buckets: buckets.names },
    async reloadKeys() {
      if (keysFile !== undefined) keys = await readKeysFile(keysFile, warn);
    },
  };
}
