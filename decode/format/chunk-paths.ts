/**
 * Which chunk of a row group is of which column, by the path that each names: for row groups whose chunks do not come in
 * the order of the schema. The format asks for that order, one writer's reader (parquet-java) goes by the paths, and
 * both are right for every file but those. Looked at only when a chunk at its place names another column.
 */
import { DecodeError } from '../errors.ts';
import type { CompactReader } from './compact.ts';
import { Wire } from './compact.ts';

export class ChunkPaths {
  readonly #reader: CompactReader;
  readonly #chunksAt: Uint32Array;
  #places: Map<string, number> | undefined;

  /** `reader` is moved about. */
  constructor(reader: CompactReader, chunksAt: Uint32Array) {
    this.#reader = reader;
    this.#chunksAt = chunksAt;
  }

  /** Position of the struct of the only chunk that names this path, or -1. */
  find(path: readonly string[]): number {
    this.#places ??= this.#readAll();
    return this.#places.get(keyOf(path)) ?? -1;
  }

  #readAll(): Map<string, number> {
    const places = new Map<string, number>();
    for (const at of this.#chunksAt) {
      this.#reader.pos = at;
      const path = readPath(this.#reader);
      if (path === undefined) continue;
      const key = keyOf(path);
      places.set(key, places.has(key) ? -1 : at);
    }
    return places;
  }
}

const keyOf = (path: readonly string[]): string => JSON.stringify(path);

/** ColumnChunk.meta_data.path_in_schema; undefined where there is none. */
function readPath(r: CompactReader): readonly string[] | undefined {
  try {
    return find(r, 3, Wire.STRUCT) && find(r, 3, Wire.LIST) ? readStrings(r) : undefined;
  } catch (error) {
    if (error instanceof DecodeError) return undefined;
    throw error;
  }
}

/** Goes to the value of a field of the struct that the reader is in; false when the struct ends before. */
function find(r: CompactReader, id: number, wanted: number): boolean {
  for (let last = 0; ; ) {
    const wire = r.field(last);
    if (wire === Wire.STOP) return false;
    last = r.id;
    if (last === id) return wire === wanted;
    r.skip(wire);
  }
}

function readStrings(r: CompactReader): readonly string[] {
  const size = r.list(Wire.LIST, Wire.BINARY);
  const strings: string[] = [];
  for (let i = 0; i < size; i++) strings.push(r.string(Wire.BINARY));
  return strings;
}
