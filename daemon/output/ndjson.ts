/**
 * NDJSON: an object per row and line. Integers and decimals are JSON numbers with all their digits (readers that know
 * only doubles round them, the text does not); NaN and Infinity, which JSON lacks, are the texts "NaN", "Infinity" and
 * "-Infinity". Groups are objects, lists arrays, maps arrays of objects with `key` and `value`. A second column of the same name is called `name_1`, so that no value is lost.
 */
import type { Field } from '../../decode/index.ts';
import { jsonField } from './json-field.ts';
import type { LineFormat } from './row-text.ts';

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

export function ndjsonFormat(fields: readonly Field[]): LineFormat {
  const names = uniqueNames(fields.map((field) => field.name));
  return {
    head: new Uint8Array(0),
    before: names.map((name, k) => bytesOf(`${k === 0 ? '{' : ','}${JSON.stringify(name)}:`)),
    after: bytesOf(fields.length === 0 ? '{}\n' : '}\n'),
    nothing: bytesOf('null'),
    field: jsonField,
  };
}

/** The names, repeated ones with a number behind them that makes them unlike all others. */
export function uniqueNames(names: readonly string[]): string[] {
  const given = new Set(names);
  const used = new Set<string>();
  return names.map((name) => {
    let unique = name;
    for (let k = 1; used.has(unique); k++) {
      const candidate = `${name}_${k}`;
      if (!given.has(candidate)) unique = candidate;
    }
    used.add(unique);
    return unique;
  });
}
