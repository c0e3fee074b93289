/** Random damage for fuzz tests: to bytes, and to the fields of page headers. */
import { Encoding } from '../format/enums.ts';
import type { SeededRandom } from './random.ts';
import type { Tree, Value } from './thrift-twin.ts';

/** Counts and lengths at the borders of something. */
export const EDGES: readonly number[] = [
  0,
  1,
  2,
  3,
  7,
  8,
  9,
  63,
  64,
  65,
  127,
  128,
  255,
  256,
  65535,
  65536,
  2 ** 30,
  2 ** 31 - 1,
  -1,
  -(2 ** 31),
];

/** A copy with one to three places changed, cut out or put in. */
export function damage(random: SeededRandom, bytes: Uint8Array): Uint8Array {
  let changed = Buffer.from(bytes);
  for (let times = 1 + random.below(3); times > 0; times--) {
    const at = random.below(changed.length + 1);
    const what = random.below(8);
    if (what === 0) changed = Buffer.concat([changed.subarray(0, at), changed.subarray(at + 1 + random.below(9))]);
    else if (what === 1)
      changed = Buffer.concat([
        changed.subarray(0, at),
        Buffer.alloc(1 + random.below(9), random.below(256)),
        changed.subarray(at),
      ]);
    else if (what === 2) changed = changed.subarray(0, at);
    else if (what === 3 && at + 4 <= changed.length) changed.writeInt32LE(EDGES[random.below(EDGES.length)]!, at);
    else if (at < changed.length) changed[at]! ^= random.below(2) === 0 ? 1 << random.below(8) : random.below(256);
  }
  return Uint8Array.from(changed);
}

const ENUMERATIONS: Record<string, number[]> = {
  type: [0, 1, 2, 3, 4],
  encoding: [...Object.values(Encoding), 1, 10],
  definition_level_encoding: [...Object.values(Encoding)],
};

/** Changes one field of a page header. */
export function changeHeader(random: SeededRandom, header: Tree): void {
  const structs = ['data_page_header', 'dictionary_page_header', 'data_page_header_v2'];
  const inside = structs.map((name) => header[name]).filter((struct): struct is Tree => struct !== undefined);
  const tree = inside.length > 0 && random.below(3) > 0 ? inside[0]! : header;
  const names = Object.keys(tree).filter((name) => typeof tree[name] !== 'object');
  const name = names[random.below(names.length)]!;
  tree[name] = changedField(random, name, tree[name]!);
}

function changedField(random: SeededRandom, name: string, value: Value): Value {
  if (typeof value === 'boolean') return !value;
  const choice = ENUMERATIONS[name];
  if (choice !== undefined) return choice[random.below(choice.length)]!;
  if (random.below(2) === 0) return EDGES[random.below(EDGES.length)]!;
  return Math.max(-(2 ** 31), (value as number) + random.below(9) - 4);
}
