/** Benchmark rows of the kernels for nested columns (units: entries), BIT_PACKED levels, decimals and INT96. */
import type { Kernels } from '../kernels/kernels.ts';
import { random } from './kernels-input.ts';

type Add = (name: string, units: number, prepare: () => void, run: (kernels: Kernels) => number | undefined) => void;

/** Levels of optional lists of optional integers: rep 0 starts a row, def 1 is an empty list, 2 a null, 3 a value. */
interface Levels {
  rep: Uint8Array;
  def: Uint8Array;
}

/** n entries of lists of `low` to `high` elements, a share of which are null. */
function lists(n: number, [low, high]: [number, number], nulls: number): Levels {
  const [rep, def] = [new Uint8Array(n), new Uint8Array(n)];
  for (let i = 0; i < n; ) {
    const length = random.int(low, high);
    for (let k = 0; k < Math.max(length, 1) && i < n; k++, i++) {
      rep[i] = k === 0 ? 0 : 1;
      def[i] = length === 0 ? 1 : random.chance(nulls) ? 2 : 3;
    }
  }
  return { rep, def };
}

/** `at`: addresses of two inputs and the output. */
export function addNested(n: number, bytes: Uint8Array, add: Add, at: [number, number, number]): void {
  const [rep, def, out] = at;
  const put = (levels: Levels) => (): void => {
    bytes.set(levels.rep, rep);
    bytes.set(levels.def, def);
  };
  for (const share of [0, 0.5]) {
    const flat = put(lists(n, [1, 1], share));
    const nulls = `${100 * share} % null`;
    add(`nestedValidity flat ${nulls}`, n, flat, (k) => k.nestedValidity(0, def, n, 0, 0, 3, out));
    add(`nestedValidity slots ${nulls}`, n, flat, (k) => k.nestedValidity(0, def, n, 0, 2, 3, out));
  }
  const shapes: [string, [number, number], number][] = [
    ['1', [1, 1], 0],
    ['1-5', [1, 5], 0],
    ['0-1', [0, 1], 0],
    ['0-6, 50 % null', [0, 6], 0.5],
    ['4-8', [4, 8], 0],
    ['20-60', [20, 60], 0],
    ['1000', [1000, 1000], 0],
  ];
  for (const [name, range, nulls] of shapes) {
    const there = put(lists(n, range, nulls));
    add(`countRows ${name}`, n, there, (k) => k.countRows(rep, n));
    add(`countSlots ${name}`, n, there, (k) => k.countSlots(rep, def, n, 1, 2));
    add(`nestedValidity lists ${name}`, n, there, (k) => k.nestedValidity(rep, def, n, 0, 0, 1, out));
    add(`nestedValidity values ${name}`, n, there, (k) => k.nestedValidity(rep, def, n, 1, 2, 3, out));
    add(`nestedOffsets ${name}`, n, there, (k) => k.nestedOffsets(rep, def, n, 0, 0, 1, 2, out));
  }
  add('findRow last', n, put(lists(n, [1, 5], 0)), (k) => k.findRow(rep, n, n));

  for (const width of [1, 3, 8]) {
    const there = (): void => bytes.set(random.bytes((n * width) / 8), rep);
    add(`bitPackedLevels ${width}`, n, there, (k) => k.bitPackedLevels(rep, def, width, n, out, 256));
  }
  add(
    'lengthsTotal',
    4 * n,
    () => bytes.fill(0, rep, rep + 4 * n),
    (k) => k.lengthsTotal(rep, n),
  );
  const noise = (): void => bytes.set(random.bytes(16 * n), rep);
  add('widenDecimal4', 16 * n, noise, (k) => k.widenDecimal4(rep, n, out) ?? 0);
  add('widenDecimal8', 16 * n, noise, (k) => k.widenDecimal8(rep, n, out) ?? 0);
  for (const width of [5, 9, 16]) {
    add(`reverseDecimal ${width}`, 16 * n, noise, (k) => k.reverseDecimal(rep, n, width, out) ?? 0);
  }
  const instants = (): void => {
    const view = new DataView(bytes.buffer);
    for (let i = 0; i < n; i++) {
      view.setBigInt64(rep + 12 * i, BigInt(random.int(0, 86_399_999)) * 1_000_000n, true);
      view.setInt32(rep + 12 * i + 8, random.int(2_430_000, 2_460_000), true);
    }
  };
  add('int96ToNanos', 8 * n, instants, (k) => k.int96ToNanos(rep, n, out));
}
