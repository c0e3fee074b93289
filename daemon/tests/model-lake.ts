/**
 * A folder of files whose every version is known, for tests of mounts against a model: Parquet of several shapes, files
 * that only look like it, and plain bytes. Versions replace each other whole, as a careful writer does.
 */
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { materialize } from '../../vfs/tests/materialize.ts';
import type { SeededRandom } from '../../vfs/tests/seeded-random.ts';
import type { View } from '../mount/view.ts';
import { Lake, numbersQuery } from './lake.ts';

/** Bytes of a file as the source has them, and as the decoded view shows them. */
export interface Content {
  readonly raw: Uint8Array;
  readonly decoded: Uint8Array;
}

export interface Version extends Content {
  readonly path: string;
  /** Counts up: no two versions are the same, whatever their bytes. */
  readonly number: number;
}

/** How a version looks in a view. */
export function shown(version: Content, view: View): Uint8Array {
  return view === 'decoded' ? version.decoded : version.raw;
}

const FIXED = `select i::bigint as id, case when i % 7 = 0 then null else (i * 31 % 1009)::int end as n, i / 3.0 as d,
  i % 3 = 0 as flag from range(300000) t(i)`;
const STRINGS = `select 'text ' || hash(i) as a, repeat('x', (i % 20)::int) as b from range(40000) t(i)`;

/** Contents for Parquet files. `chunkBytesMax` is the view's bound on decoded chunks. */
export async function makeContents(random: SeededRandom, chunkBytesMax: number): Promise<Content[]> {
  await using lake = await Lake.create();
  const paths = [
    await lake.write('numbers.parquet', numbersQuery(90_000), 'row_group_size 20480'),
    await lake.write('fixed.parquet', FIXED, 'row_group_size 122880'),
    await lake.write('strings.parquet', STRINGS, 'row_group_size 8192'),
    await lake.write('small.parquet', numbersQuery(900)),
    await lake.write('plain.parquet', FIXED, 'row_group_size 61440, compression uncompressed'),
  ];
  const parquet = paths.map((path) => {
    const raw = new Uint8Array(readFileSync(path));
    return { raw, decoded: materialize(raw, { chunkBytesMax }) ?? raw };
  });
  const cut = parquet[0]!.raw.subarray(0, 500_000);
  const noise = random.bytes(20_000 + random.below(2_000_000));
  return [...parquet, { raw: cut, decoded: cut }, { raw: noise, decoded: noise }];
}

export class ModelLake {
  /** Where the files are. */
  readonly folder: string;
  /** What they are now. */
  readonly current = new Map<string, Version>();
  /** Paths whose files have been replaced or removed, by the number of the version that was there. */
  readonly gone = new Set<number>();
  readonly #base = mkdtempSync(join(tmpdir(), 'qanat-model-'));
  readonly #contents: readonly Content[];
  readonly #random: SeededRandom;
  #number = 0;

  constructor(random: SeededRandom, contents: readonly Content[]) {
    this.#random = random;
    this.#contents = contents;
    this.folder = join(this.#base, 'lake');
    mkdirSync(this.folder);
  }

  /** A folder of the lake's own, beside the files. */
  path(name: string): string {
    return join(this.#base, name);
  }

  /** Puts another file into the place of what is there; which one is random. */
  put(path: string): Version {
    const content = path.endsWith('.parquet') ? this.#random.pick(this.#contents) : this.#plainBytes();
    writeFileSync(this.path('new'), content.raw);
    this.place('new', path);
    this.#lose(path);
    const version = { ...content, path, number: ++this.#number };
    this.current.set(path, version);
    return version;
  }

  /** Gives a file beside the lake its name in it. */
  place(name: string, path: string): void {
    const target = join(this.folder, path);
    mkdirSync(dirname(target), { recursive: true });
    renameSync(this.path(name), target);
  }

  remove(path: string): void {
    rmSync(join(this.folder, path));
    this.#lose(path);
    this.current.delete(path);
  }

  #lose(path: string): void {
    const before = this.current.get(path);
    if (before !== undefined) this.gone.add(before.number);
  }

  #plainBytes(): Content {
    const raw = this.#random.bytes(this.#random.pick([0, 1, 5000, 1_100_000, 9_000_000]) + this.#random.below(3000));
    return { raw, decoded: raw };
  }

  [Symbol.dispose](): void {
    rmSync(this.#base, { recursive: true, force: true });
  }
}
