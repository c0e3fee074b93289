/**
 * The files of the soak run: written beside the folder that is served and renamed into it, as people should. Knows which
 * versions were on disk when, and so what each generation may hold: a scan has to fit one of them.
 */
import { mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { FILES, FIXED, pathOf, rowsQuery, type SeenVersions } from './soak-rows.ts';

/** Every codec that DuckDB writes, so that all are scanned. */
const CODECS = ['snappy', 'zstd', 'uncompressed', 'lz4_raw', 'gzip', 'brotli'] as const;

/** Milliseconds by which what two processes read off the clock may be out of order. */
const CLOCK_MS = 5;

/**
 * Milliseconds that a look at the folder takes at most. The server waits for 200 of quiet before it looks: so a file that
 * was renamed before that is in what it publishes.
 */
const LOOK_MS = 150;

/**
 * Milliseconds for which a client may go on listing a generation that was replaced: until it gets to read that there is
 * a new one, which takes as long as it is frozen, or waits for the processor.
 */
const NOTICE_MS = 15_000;

interface Period {
  readonly version: number;
  readonly from: number;
  until: number;
}

interface Publication {
  /** Milliseconds since 1970; of the first one: when the files were there. */
  readonly at: number;
}

export class SoakLake implements AsyncDisposable {
  readonly folder: string;
  readonly #whole: string;
  readonly #aside: string;
  readonly #instance: DuckDBInstance;
  readonly #connection: DuckDBConnection;
  /** Of each file, the versions that were there, one after the other. */
  readonly #periods: Period[][] = Array.from({ length: FILES }, () => []);
  readonly #publications: Publication[] = [];
  #version = 0;

  private constructor(whole: string, instance: DuckDBInstance, connection: DuckDBConnection) {
    this.#whole = whole;
    this.folder = join(whole, 'served');
    this.#aside = join(whole, 'aside');
    this.#instance = instance;
    this.#connection = connection;
  }

  static async create(): Promise<SoakLake> {
    const whole = mkdtempSync(join(tmpdir(), 'qanat-soak-'));
    const instance = await DuckDBInstance.create(':memory:');
    const connection = await instance.connect();
    await connection.run('set threads=1');
    const lake = new SoakLake(whole, instance, connection);
    mkdirSync(lake.folder);
    mkdirSync(lake.#aside);
    await lake.rewrite(Array.from({ length: FILES }, (_, file) => file));
    lake.#publications.push({ at: Date.now() });
    return lake;
  }

  /** A place for what else the run writes. */
  path(name: string): string {
    return join(this.#whole, name);
  }

  /** Files written so far, and generations that are known. */
  get rewrites(): number {
    return this.#version;
  }

  get publications(): number {
    return this.#publications.length;
  }

  /** Gives files a new version each, all of them within a moment. */
  async rewrite(files: readonly number[]): Promise<void> {
    const written = new Map<number, number>();
    for (const file of files) {
      const version = ++this.#version;
      const options = `format parquet, row_group_size 8192, codec ${CODECS[version % CODECS.length]}`;
      await this.#connection.run(`copy (${rowsQuery(file, version)}) to '${this.#asidePath(file)}' (${options})`);
      written.set(file, version);
    }
    for (const [file, version] of written) {
      const from = Date.now();
      renameSync(this.#asidePath(file), join(this.folder, pathOf(file)));
      const periods = this.#periods[file]!;
      const before = periods.at(-1);
      if (before !== undefined) before.until = Date.now();
      periods.push({ version, from, until: Number.POSITIVE_INFINITY });
    }
  }

  #asidePath(file: number): string {
    return join(this.#aside, pathOf(file));
  }

  /** The server says that it has published, at this time. */
  published(at: number): void {
    this.#publications.push({ at });
  }

  /**
   * What is wrong with the versions that a scan between two times has given, if something is: all of them have to be of
   * one generation, and that one has to have been served then. `whole`: the scan was of everything and came to its end.
   */
  complaint(seen: SeenVersions, began: number, ended: number, whole: boolean): string | undefined {
    if (whole && seen.length !== FILES) return `${seen.length} of ${FILES} files`;
    const candidates = this.#publications.filter(({ at }, k) => {
      const replaced = this.#publications[k + 1]?.at ?? Number.POSITIVE_INFINITY;
      return at <= ended + CLOCK_MS && replaced >= began - NOTICE_MS;
    });
    const fits = candidates.some((publication) =>
      seen.every(([file, version]) => this.#allowed(publication, file).has(version)),
    );
    if (fits) return undefined;
    const found = seen.map(([file, version]) => `${pathOf(file)} ${version}`).join(', ');
    return `no generation of that time has ${found}`;
  }

  /** Versions of a file that the look may have found; more than one only if it was just being replaced. */
  #allowed({ at }: Publication, file: number): Set<number> {
    const there = this.#periods[file]!.filter(({ from, until }) => from <= at + CLOCK_MS && until >= at - LOOK_MS);
    return new Set(there.map(({ version }) => version));
  }

  /** Files that are rewritten. */
  static get moving(): number {
    return FILES - FIXED;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#connection.closeSync();
    this.#instance.closeSync();
    rmSync(this.#whole, { recursive: true, force: true });
  }
}
