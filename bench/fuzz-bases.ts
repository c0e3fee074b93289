/**
 * The files that the fuzzer changes: small ones that the test writer makes, of every kind, encoding, codec and form of
 * nesting, and those of a corpus folder when there is one. A base is made from the seed and its number alone.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { makePlan, randomShape } from '../decode/tests/chunk-cases.ts';
import { nestedFile, pick, randomField, randomPlan, valueGenerator } from '../decode/tests/nested-cases.ts';
import { randomFrom, type SeededRandom } from '../decode/tests/random.ts';
import { type ChunkPlan, type FieldPlan, writeFile } from '../decode/tests/writer/index.ts';

export interface Base {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** Generated files of a run. */
const GENERATED = 96;
/** Bytes: corpus files up to here; larger ones make slow mutants and hold nothing else. */
const CORPUS_FILE_BYTES_MAX = 48 << 10;

/** A generator of its own for each thing that a seed makes. */
export function randomOf(seed: number, purpose: number, index: number): SeededRandom {
  return randomFrom(Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(index + 1, 0xc2b2ae35) ^ (purpose << 28));
}

export class Bases {
  readonly #seed: number;
  readonly #corpus: readonly string[];
  readonly #made = new Map<number, Base>();

  /** `folder` holds corpus files, itself or in `files/`; none of them when it is absent. */
  constructor(seed: number, folder: string | undefined) {
    this.#seed = seed;
    this.#corpus = folder === undefined ? [] : corpusFiles(folder);
  }

  get corpusFiles(): number {
    return this.#corpus.length;
  }

  /** One of them, half of the time of the corpus. */
  pick(random: SeededRandom): Base {
    const corpus = this.#corpus.length > 0 && random.below(2) === 0;
    return this.#get(corpus ? GENERATED + random.below(this.#corpus.length) : random.below(GENERATED));
  }

  #get(index: number): Base {
    let base = this.#made.get(index);
    if (base === undefined) {
      const path = this.#corpus[index - GENERATED];
      base =
        path === undefined
          ? generate(randomOf(this.#seed, 1, index), index)
          : { name: path, bytes: Uint8Array.from(readFileSync(path)) };
      this.#made.set(index, base);
    }
    return base;
  }
}

function corpusFiles(folder: string): string[] {
  const files = join(folder, 'files');
  const where = existsSync(files) ? files : folder;
  return readdirSync(where)
    .filter((name) => name.endsWith('.parquet'))
    .sort()
    .map((name) => join(where, name))
    .filter((path) => statSync(path).size <= CORPUS_FILE_BYTES_MAX);
}

function generate(random: SeededRandom, index: number): Base {
  const name = `generated ${index}`;
  return { name, bytes: index % 2 === 0 ? flatFile(random) : nested(random) };
}

/** Some columns of one length each, in one to three row groups. */
function flatFile(random: SeededRandom): Uint8Array {
  const columns = 1 + random.below(5);
  const shapes = Array.from({ length: columns }, () => randomShape(random));
  const rowGroups = Array.from({ length: 1 + random.below(3) }, () => {
    const rows = pick(random, [1, 7, 64, 200, 400]);
    return shapes.map((shape, k): ChunkPlan => {
      const plan = makePlan(random, { ...shape, rows, pageRows: random.below(4) === 0 ? 0 : 1 + random.below(rows) });
      const converted = shape.kind.utf8 ? { converted: 0 } : {};
      return { ...plan, column: { ...plan.column, name: `${k} ${plan.column.name}`, ...converted } };
    });
  });
  return writeFile({ rowGroups, omitDictionaryOffset: random.below(4) === 0 }).bytes;
}

function nested(random: SeededRandom): Uint8Array {
  const fields: FieldPlan[] = [];
  for (let left = 1 + random.below(3); left > 0; left--) {
    fields.push(randomField(random, `f${left}`, 1 + random.below(4)));
  }
  const makers = fields.map((field) => valueGenerator(random, field, { nulls: 25, elements: 4, distinct: 12 }));
  const rowGroups = Array.from({ length: 1 + random.below(2) }, () =>
    Array.from({ length: 1 + random.below(60) }, () => makers.map((make) => make())),
  );
  return nestedFile(fields, rowGroups, randomPlan(random)).bytes;
}
