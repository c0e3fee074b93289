/** The daemon's parts in this process, with all that a test wants to look at: engine, sources, service, server, log. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Table, tableFromIPC } from 'apache-arrow';
import { openSource } from '../../vfs/index.ts';
import type { SourceConfig } from '../config/config.ts';
import { SETTING_NAMES, type Settings, settingOf } from '../config/schema.ts';
import { ApiServer, type ApiTimes } from '../http/api-server.ts';
import { NamedSources } from '../http/named-sources.ts';
import { ScanService } from '../http/scan-service.ts';
import { createLog } from '../log.ts';
import { ScanEngine } from '../scan/engine.ts';

export const STANDARD = Object.fromEntries(
  SETTING_NAMES.map((name) => [name, settingOf(name).standard]),
) as unknown as Settings;

export function sourceConfig(location: string, settings: Partial<Settings> = {}): SourceConfig {
  return { ...STANDARD, ...settings, location, folder: '/' };
}

export interface ApiAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
  /** Of an answer in JSON. */
  readonly json: () => ErrorBody & Readonly<Record<string, unknown>>;
}

export interface ErrorBody {
  readonly error: {
    readonly code: string;
    readonly message: string;
    readonly retryable: boolean;
    readonly problems?: ReadonlyArray<{ readonly path: string; readonly message: string }>;
  };
}

export class TestApi {
  readonly engine: ScanEngine;
  readonly service: ScanService;
  readonly sources: NamedSources;
  readonly log: readonly string[];
  readonly api: ApiServer;
  /** Bytes of the pool that an idle engine has in use. */
  readonly idleBytes: number;

  private constructor(engine: ScanEngine, service: ScanService, api: ApiServer, log: readonly string[]) {
    this.engine = engine;
    this.service = service;
    this.sources = service.sources;
    this.api = api;
    this.log = log;
    this.idleBytes = engine.pool.usedBytes;
  }

  static async start(
    locations: Readonly<Record<string, string>>,
    settings: Partial<Settings> = {},
    times?: ApiTimes,
  ): Promise<TestApi> {
    const lines: string[] = [];
    const log = createLog({ command: 'daemon', level: 'debug', format: 'json', write: (line) => lines.push(line) });
    const all: Settings = { ...STANDARD, memory: 64 << 20, decoders: 1, ...settings };
    const engine = new ScanEngine({ memoryBytes: all.memory, decoders: all.decoders });
    const sources = new NamedSources(log);
    sources.apply(new Map(Object.entries(locations).map(([name, location]) => [name, sourceConfig(location, all)])));
    const service = new ScanService(engine, sources, all);
    const api = await ApiServer.start(service, log, { host: '127.0.0.1', port: 0 }, times);
    return new TestApi(engine, service, api, lines);
  }

  get port(): number {
    return this.api.address().port;
  }

  url(path: string): string {
    return `http://127.0.0.1:${this.port}${path}`;
  }

  /** POST /v1/scan, not read yet. */
  request(body: unknown, signal?: AbortSignal): Promise<Response> {
    return fetch(this.url('/v1/scan'), {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    });
  }

  async post(body: unknown): Promise<ApiAnswer> {
    return answerOf(await this.request(body));
  }

  async get(path: string, init: RequestInit = {}): Promise<ApiAnswer> {
    return answerOf(await fetch(this.url(path), init));
  }

  /** The rows of a scan, which has to succeed. */
  async table(body: unknown): Promise<Table> {
    const { status, bytes } = await this.post(body);
    assert.equal(status, 200, bytes.toString('utf8', 0, 500));
    return tableFromIPC(bytes);
  }

  /** The scan must be refused; its error. */
  async refusal(body: unknown): Promise<ErrorBody['error'] & { status: number; headers: Headers }> {
    const { status, headers, json } = await this.post(body);
    assert.match(headers.get('content-type') ?? '', /^application\/json/);
    return { status, headers, ...json().error };
  }

  /** Waits until no scan is under way and nothing of any is in memory. */
  async idle(): Promise<void> {
    await until(() => this.service.running === 0 && this.engine.scans.size === 0);
    assert.equal(this.engine.pool.usedBytes, this.idleBytes, 'the pool is as empty as before');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service.drain(0);
    await this.api.close();
    await this.engine.close();
    await this.sources.close();
  }
}

async function answerOf(response: Response): Promise<ApiAnswer> {
  const bytes = Buffer.from(await response.arrayBuffer());
  return { status: response.status, headers: response.headers, bytes, json: () => JSON.parse(bytes.toString('utf8')) };
}

/** A copy of a file whose last row group has a page of its last column but one that does not decode. */
export async function copyBroken(from: string, to: string): Promise<void> {
  const bytes = await readFile(from);
  const source = await openSource(from);
  try {
    const { rowGroups } = await (await source.open((await source.list())[0]!)).footer();
    const { start, end } = rowGroups.at(-1)!.columns.at(-2)!.bytes;
    bytes.fill(0xff, start + Math.floor((end - start) / 2), end);
  } finally {
    await source.close();
  }
  await writeFile(to, bytes);
}

/** Waits for what will be so soon; fails when it is not within a time that says that it never will. */
export async function until(holds: () => boolean, withinMs = 30_000): Promise<void> {
  const end = performance.now() + withinMs;
  while (!holds()) {
    assert.ok(performance.now() < end, `not so within ${withinMs} ms: ${holds}`);
    await sleep(5);
  }
}
