/** S3 servers that nobody here wrote, as processes on free ports of this machine, with a bucket that a test fills. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  CreateBucketCommand,
  ListBucketsCommand,
  PutBucketVersioningCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { cleanEnvironment } from './command-run.ts';
import { freePort } from './web-process.ts';

export const STORE_KINDS = ['moto', 'rclone', 'seaweedfs'] as const;
export type StoreKind = (typeof STORE_KINDS)[number];

export const STORE_KEYS = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secretsecret' } as const;

const STORES = process.env.QANAT_STORES ?? '';
const START_MS = 60_000;

/** Why there is no such server here; false when there is one. */
export function whyNoStore(kind: StoreKind): string | false {
  if (kind === 'seaweedfs') return spawnSync('weed', ['version']).status === 0 ? false : 'weed is not on the path';
  if (STORES === '') return 'QANAT_STORES names no folder (daemon/tests/stores/setup.sh makes one)';
  const program = join(STORES, kind === 'moto' ? 'python' : 'rclone');
  return existsSync(program) ? false : `${program} does not exist`;
}

export class Store {
  readonly endpoint: string;
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #client: S3Client;

  private constructor(endpoint: string, child: ChildProcess, folder: string) {
    this.endpoint = endpoint;
    this.#child = child;
    this.#folder = folder;
    const access = { credentials: STORE_KEYS, region: 'us-east-1' };
    this.#client = new S3Client({ endpoint, forcePathStyle: true, ...access });
  }

  static async start(kind: StoreKind): Promise<Store> {
    const folder = mkdtempSync(join(tmpdir(), 'qanat-store-'));
    const [endpoint, child] = await START[kind](folder);
    const store = new Store(endpoint, child, folder);
    for (const since = Date.now(); ; await sleep(100)) {
      try {
        await store.#client.send(new ListBucketsCommand());
        return store;
      } catch (error) {
        if (child.exitCode === null && Date.now() - since < START_MS) continue;
        await store[Symbol.asyncDispose]();
        throw error;
      }
    }
  }

  async makeBucket(bucket: string): Promise<void> {
    await this.#client.send(new CreateBucketCommand({ Bucket: bucket }));
  }

  /** From now on the bucket keeps what is overwritten. */
  async keepVersions(bucket: string): Promise<void> {
    const versioning = { Status: 'Enabled' } as const;
    await this.#client.send(new PutBucketVersioningCommand({ Bucket: bucket, VersioningConfiguration: versioning }));
  }

  async put(bucket: string, key: string, bytes: Uint8Array): Promise<void> {
    await this.#client.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: bytes }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client.destroy();
    if (this.#child.exitCode === null) {
      const exited = once(this.#child, 'exit');
      this.#child.kill('SIGKILL');
      await exited;
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

const START: Readonly<Record<StoreKind, (folder: string) => Promise<[endpoint: string, child: ChildProcess]>>> = {
  moto: async () => {
    const child = start(join(STORES, 'python'), ['-m', 'moto.server', '-H', '127.0.0.1', '-p', '0']);
    return [await told(child, /Running on (http:\/\/127\.0\.0\.1:\d+)/), child];
  },
  rclone: async (folder) => {
    const keys = `${STORE_KEYS.accessKeyId},${STORE_KEYS.secretAccessKey}`;
    const options = ['--addr', '127.0.0.1:0', '--auth-key', keys, '--config', join(folder, 'none'), '-v'];
    mkdirSync(join(folder, 'data'));
    const child = start(join(STORES, 'rclone'), ['serve', 's3', join(folder, 'data'), ...options]);
    return [await told(child, /(http:\/\/127\.0\.0\.1:\d+)/), child];
  },
  seaweedfs: async (folder) => {
    const { accessKeyId, secretAccessKey } = STORE_KEYS;
    const identity = { name: 'test', credentials: [{ accessKey: accessKeyId, secretKey: secretAccessKey }] };
    const config = { identities: [{ ...identity, actions: ['Admin', 'Read', 'List', 'Write'] }] };
    writeFileSync(join(folder, 's3.json'), JSON.stringify(config));
    const [s3, filer, master, volume] = [await freePort(), await freePort(), await freePort(), await freePort()];
    const ports = [`-s3.port=${s3}`, `-filer.port=${filer}`, `-master.port=${master}`, `-volume.port=${volume}`];
    const grpc = await Promise.all([1, 2, 3, 4].map(freePort));
    const inner = ['s3', 'filer', 'master', 'volume'].map((name, i) => `-${name}.port.grpc=${grpc[i]}`);
    const where = ['-ip=127.0.0.1', '-ip.bind=127.0.0.1', `-dir=${folder}`, `-s3.config=${join(folder, 's3.json')}`];
    const child = start('weed', [
      'server',
      '-s3',
      '-filer',
      ...where,
      ...ports,
      ...inner,
      '-master.volumeSizeLimitMB=64',
    ]);
    child.stdout!.resume();
    child.stderr!.resume();
    return [`http://127.0.0.1:${s3}`, child];
  },
};

function start(program: string, args: readonly string[]): ChildProcess {
  return spawn(program, args, { env: cleanEnvironment(), stdio: ['ignore', 'pipe', 'pipe'] });
}

/** What a server says when it is ready; what it says after that is thrown away. */
async function told(child: ChildProcess, form: RegExp): Promise<string> {
  const lines: string[] = [];
  const address = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`a server did not start: ${lines.join('\n')}`)), START_MS);
    child.once('exit', () => reject(new Error(`a server ended: ${lines.join('\n')}`)));
    for (const stream of [child.stdout!, child.stderr!]) {
      createInterface({ input: stream }).on('line', (line) => {
        const found = form.exec(line)?.[1];
        if (lines.length < 50) lines.push(line);
        if (found === undefined) return;
        clearTimeout(timer);
        resolve(found);
      });
    }
  }).catch((error: unknown) => {
    child.kill('SIGKILL');
    throw error;
  });
  return address;
}
