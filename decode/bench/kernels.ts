/**
 * Speed of every kernel on one thread, in GB/s of output (bitmaps and levels: G values/s): medians of rounds.
 *   node decode/bench/kernels.ts [--small] [--only <text>] [--against <other kernels.wasm>]
 * With `--against` another build runs in turn with ours, round by round, so that their ratio means something on a
 * shared machine. Kernels that the other build lacks have no ratio.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { BYTES, DELTA, DELTA_BYTES, HYBRID, type Kernels, LEVELS, LZ4, SNAPPY } from '../kernels/kernels.ts';
import { loadKernels } from '../kernels/load.ts';
import {
  bitmap,
  deltaBlocks,
  lz4Sequences,
  packedRuns,
  plainStrings,
  random,
  repeatedRuns,
  snappyTokens,
} from './kernels-input.ts';
import { addNested } from './kernels-nested.ts';

/** One figure: `run` makes `units` bytes (or values); an exception or a negative code ends the benchmark. */
interface Row {
  name: string;
  units: number;
  prepare: () => void;
  run: (kernels: Kernels) => number | undefined;
  /** What other builds may not know. */
  alone?: boolean;
}
export interface Rate {
  name: string;
  rate: number;
  /** Ours over theirs. */
  ratio?: number;
}

const MIB = 1 << 20;
const [STATE, SRC, OUT, DICTIONARY, SIDE] = [MIB / 8, 4 * MIB, 64 * MIB, 128 * MIB, 192 * MIB];

function makeRows(n: number, memory: WebAssembly.Memory): Row[] {
  const bytes = new Uint8Array(memory.buffer);
  const words = new Uint32Array(memory.buffer);
  const begin = (state: Record<number, number>): number => {
    words.fill(0, STATE / 4, STATE / 4 + 32);
    for (const [word, value] of Object.entries(state)) words[(STATE + Number(word)) / 4] = value;
    return STATE;
  };
  const rows: Row[] = [];
  const add = (name: string, units: number, prepare: () => void, run: Row['run'], alone = false): void => {
    rows.push({ name, units, prepare, run, alone });
  };
  const put =
    (src: Uint8Array, at = SRC) =>
    (): void =>
      bytes.set(src, at);

  for (const [name, literal, copy, share] of [
    ['long tokens', [1, 60], [4, 64], 0.5],
    ['pairs 1-4 + 5-8', [1, 4], [5, 8], 1],
    ['short, mixed', [1, 8], [4, 11], 0.5],
  ] as [string, [number, number], [number, number], number][]) {
    const { block, size } = snappyTokens(8 * n, literal, copy, share);
    const end = SRC + block.length;
    const state = { [SNAPPY.ip]: SRC, [SNAPPY.srcEnd]: end, [SNAPPY.dst]: OUT, [SNAPPY.op]: OUT };
    const full = { ...state, [SNAPPY.dstEnd]: OUT + size };
    add(`snappy ${name}`, size, put(block), (k) => k.snappy(begin(full), end));
  }
  for (const [name, literal, match] of [
    ['int64', [0, 2], [6, 8]],
    ['words', [0, 8], [4, 20]],
    ['long', [0, 60], [4, 90]],
  ] as [string, [number, number], [number, number]][]) {
    const { block, size } = lz4Sequences(8 * n, literal, match);
    const end = SRC + block.length;
    const state = { [LZ4.ip]: SRC, [LZ4.srcEnd]: end, [LZ4.dst]: OUT, [LZ4.op]: OUT, [LZ4.dstEnd]: OUT + size };
    add(`lz4 ${name}`, size, put(block), (k) => k.lz4(begin(state), end));
  }

  const runs = (
    kernel: keyof Kernels & `hybrid${string}`,
    name: string,
    size: number,
    width: number,
    src: Uint8Array,
  ) => {
    const end = SRC + src.length;
    const state = { [HYBRID.ip]: SRC, [HYBRID.srcEnd]: end, [HYBRID.op]: OUT, [HYBRID.wanted]: n };
    const full = { ...state, [HYBRID.width]: width, [HYBRID.dictionary]: DICTIONARY, [HYBRID.limit]: 2 ** width };
    add(`${kernel} ${name}`, n * size, put(src), (k) => k[kernel](begin(full), end));
    return { end, full };
  };
  const value = (width: number) => (): number => random.int(0, 2 ** width - 1);
  for (const run of [4, 8, 16]) runs('hybridU32', `RLE of ${run}`, 4, 4, repeatedRuns(n, 4, run, value(4)));
  for (const run of [32, 64, 512]) runs('hybridU32', `packed ${run} w 4`, 4, 4, packedRuns(n, 4, run, value(4)));
  runs('hybridU32', 'packed 512 w 17', 4, 17, packedRuns(n, 17, 512, value(17)));
  runs('hybridU16', 'packed 512 w 10', 2, 10, packedRuns(n, 10, 512, value(10)));
  runs('hybridU8', 'packed 512 w 1', 1, 1, packedRuns(n, 1, 512, value(1)));
  runs('hybridDict4', '4096 entries', 4, 12, packedRuns(n, 12, 512, value(12)));
  runs('hybridDict8', '4096 entries', 8, 12, packedRuns(n, 12, 512, value(12)));
  runs('hybridDict8', '16 entries', 8, 4, packedRuns(n, 4, 512, value(4)));
  const { end, full } = runs('hybridU32', 'packed 512 w 12', 4, 12, packedRuns(n, 12, 512, value(12)));
  add(
    'hybridU32 in pieces of 1000',
    4 * n,
    put(packedRuns(n, 12, 512, value(12))),
    (k) => {
      begin(full);
      for (let left = n; left > 0; left -= 1000) {
        words[(STATE + HYBRID.wanted) / 4] = Math.min(left, 1000);
        const code = k.hybridU32(STATE, end);
        if (code !== 0) return -1;
      }
      return 0;
    },
    true,
  );

  for (const [name, src] of [
    ['one run', repeatedRuns(n, 1, n, () => 1)],
    ['packed 512', packedRuns(n, 1, 512, value(1))],
    ['RLE of 8', repeatedRuns(n, 1, 8, value(1))],
    ['RLE of 100', repeatedRuns(n, 1, 100, value(1))],
  ] as [string, Uint8Array][]) {
    const mark = SRC + src.length;
    const state = { [LEVELS.ip]: SRC, [LEVELS.srcEnd]: mark, [LEVELS.op]: OUT, [LEVELS.wanted]: n };
    add(`levelBitmap ${name}`, n, put(src), (k) => k.levelBitmap(begin(state), mark));
  }
  for (const share of [1, 0.9, 0.5]) {
    const { bits, ones } = bitmap(n, share);
    const there = put(bits, SIDE);
    for (const name of ['spread1', 'spread4', 'spread8', 'spread16', 'spreadOffsets', 'spreadBits'] as const) {
      const size = name === 'spreadOffsets' ? 4 : name === 'spreadBits' ? 1 : Number(name.slice(6));
      add(`${name} ${100 * share} %`, n * size, there, (k) => k[name](OUT, SIDE, n, ones));
    }
    add(`spreadWide 12 ${100 * share} %`, n * 12, there, (k) => k.spreadWide(OUT, SIDE, n, ones, 12));
  }
  add('countOnes', n, put(random.bytes(n / 8)), (k) => (k.countOnes(SRC, n) > 0 ? 0 : -1));
  add('copyBits 3 to 5', n, put(random.bytes(n / 8 + 1)), (k) => k.copyBits(SRC, 3, OUT, 5, n) ?? 0);

  for (const [low, high] of [
    [1, 10],
    [10, 43],
    [100, 300],
  ] as [number, number][]) {
    const count = Math.min(n, Math.floor((32 * n) / high));
    const { src, bytes: size } = plainStrings(count, [low, high]);
    const mark = SRC + src.length;
    const state = { [BYTES.ip]: SRC, [BYTES.srcEnd]: mark, [BYTES.slot]: OUT + 4, [BYTES.wanted]: count };
    const whole = { ...state, [BYTES.op]: DICTIONARY, [BYTES.dataEnd]: DICTIONARY + size };
    add(`plainBytes ${low}-${high}`, size + 4 * count, put(src), (k) => k.plainBytes(begin(whole), mark));
    const letters = random.bytes(size).map((byte) => 97 + (byte % 26));
    add(`utf8 ASCII ${low}-${high}`, size, put(letters, DICTIONARY), (k) =>
      k.utf8(DICTIONARY, DICTIONARY + size, STATE),
    );

    const entries = 1000;
    const offsets = [0];
    for (let i = 0; i < entries; i++) offsets.push((offsets.at(-1) as number) + random.int(low, high));
    const indices = Uint32Array.from({ length: count }, () => random.int(0, entries - 1));
    let made = 0;
    for (const index of indices) made += (offsets[index + 1] as number) - (offsets[index] as number);
    const prepare = (): void => {
      bytes.set(new Uint8Array(indices.buffer), SRC);
      bytes.set(new Uint8Array(Uint32Array.from(offsets).buffer), SIDE);
    };
    add(`gatherOffsets ${low}-${high}`, 4 * count, prepare, (k) => k.gatherOffsets(SRC, count, SIDE, OUT, 0));
    add(
      `gatherBytes ${low}-${high}`,
      made,
      prepare,
      (k) => k.gatherBytes(SRC, count, SIDE, DICTIONARY, OUT, OUT + made) ?? 0,
    );
  }
  const mixed = new TextEncoder().encode('żółw и 漢字 🐢 abc '.repeat(n / 8));
  add('utf8 mixed scripts', mixed.length, put(mixed), (k) => k.utf8(SRC, SRC + mixed.length, STATE));
  const picked = Uint32Array.from({ length: n }, () => random.int(0, 4095));
  for (const width of [4, 8, 12, 16, 20]) {
    const prepare = put(new Uint8Array(picked.buffer));
    add(`gatherWide ${width}`, n * width, prepare, (k) => k.gatherWide(SRC, n, DICTIONARY, width, OUT) ?? 0);
  }

  for (const bits of [32, 64] as const) {
    for (const width of [0, 7, 12, 28]) {
      const src = deltaBlocks(n + 1, width);
      const mark = SRC + src.length;
      const state = { [DELTA.ip]: SRC, [DELTA.srcEnd]: mark, [DELTA.op]: OUT, [DELTA.wanted]: n + 1 };
      const whole = { ...state, [DELTA.total]: n + 1 };
      add(`delta${bits} width ${width}`, (n * bits) / 8, put(src), (k) => k[`delta${bits}`](begin(whole), mark));
    }
  }
  addDeltaBytes(n, bytes, begin, add);
  for (const width of [2, 4, 8, 16]) {
    add(`joinStreams ${width}`, n * width, put(random.bytes(n * width)), (k) =>
      k.joinStreams(SRC, n, width, OUT, 0, n),
    );
  }
  addNested(n, bytes, add, [SRC, DICTIONARY, OUT]);
  add(
    'copy',
    MIB,
    () => undefined,
    (k) => k.copy(OUT, SRC, MIB) ?? 0,
  );
  return rows;
}

function addDeltaBytes(
  n: number,
  bytes: Uint8Array,
  begin: (state: Record<number, number>) => number,
  add: (name: string, units: number, prepare: () => void, run: Row['run']) => void,
): void {
  const [prefixes, suffixes] = [new Int32Array(n), new Int32Array(n)];
  let [before, made, stored] = [0, 0, 0];
  for (let i = 0; i < n; i++) {
    const prefix = Math.min(before, random.int(0, 14));
    const suffix = random.int(1, 14);
    [prefixes[i], suffixes[i]] = [prefix, suffix];
    before = prefix + suffix;
    made += before;
    stored += suffix;
  }
  const mark = SRC + stored;
  const state = { [DELTA_BYTES.ip]: SRC, [DELTA_BYTES.srcEnd]: mark, [DELTA_BYTES.slot]: SIDE + 16 * MIB };
  const room = { [DELTA_BYTES.op]: OUT, [DELTA_BYTES.dataEnd]: OUT + made, [DELTA_BYTES.previous]: OUT };
  const lengths = { [DELTA_BYTES.wanted]: n, [DELTA_BYTES.prefixes]: DICTIONARY, [DELTA_BYTES.suffixes]: SIDE };
  const prepare = (): void => {
    bytes.set(new Uint8Array(prefixes.buffer), DICTIONARY);
    bytes.set(new Uint8Array(suffixes.buffer), SIDE);
  };
  add('deltaBytes ~14 B', made, prepare, (k) => k.deltaBytes(begin({ ...state, ...room, ...lengths }), mark));
}

/** `values` a run; a multiple of 512. */
export function benchKernels(values: number, rounds: number, only = '', against?: string): Rate[] {
  const memory = new WebAssembly.Memory({ initial: 16 * 224, maximum: 16384, shared: true });
  const builds: Partial<Kernels>[] = [loadKernels(memory, 'wasm')];
  if (against !== undefined) {
    const module = new WebAssembly.Module(readFileSync(against));
    builds.push(new WebAssembly.Instance(module, { env: { memory } }).exports as Partial<Kernels>);
  }
  const rates: Rate[] = [];
  for (const { name, units, prepare, run, alone } of makeRows(values, memory)) {
    if (!name.includes(only)) continue;
    prepare();
    const kernel = name.split(' ')[0] as keyof Kernels;
    const [ours, theirs] = timeBuilds(
      name,
      builds.filter((build, i) => i === 0 || (!alone && kernel in build)) as Kernels[],
      run,
      rounds,
    );
    const rate = units / 1e6 / (ours as number);
    rates.push(theirs === undefined ? { name, rate } : { name, rate, ratio: theirs / (ours as number) });
  }
  return rates;
}

/** Median milliseconds of a run for each build; the builds take turns. */
function timeBuilds(name: string, builds: Kernels[], run: Row['run'], rounds: number): number[] {
  const repeat = 4;
  const times = builds.map((): number[] => []);
  for (let round = -5; round < rounds; round++) {
    builds.forEach((build, i) => {
      const start = performance.now();
      for (let k = 0; k < repeat; k++) {
        const code = run(build) ?? 0;
        if (code < 0) throw new Error(`${name} returned ${code}`);
      }
      if (round >= 0) times[i]?.push((performance.now() - start) / repeat);
    });
  }
  return times.map((list) => list.sort((a, b) => a - b)[list.length >> 1] as number);
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { small: { type: 'boolean' }, only: { type: 'string' }, against: { type: 'string' } },
  });
  const size: [number, number] = values.small ? [1 << 13, 5] : [1 << 17, 25];
  for (const { name, rate, ratio } of benchKernels(...size, values.only, values.against)) {
    const versus = ratio === undefined ? '' : `  ${ratio.toFixed(3)} x the other`;
    process.stdout.write(`${name.padEnd(30)}${rate.toFixed(2).padStart(9)}${versus}\n`);
  }
}
