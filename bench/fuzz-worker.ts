/**
 * Scans mutants one after the other in one process and on one engine, as a server would: whatever a file does, the
 * next one must scan. Says to its parent what each came to; the parent watches that it goes on saying something.
 */
import { DecodeError, FetchError, ScanEngine } from '../daemon/index.ts';
import { Bases, randomOf } from './fuzz-bases.ts';
import { makeMutant, UNCHANGED } from './fuzz-mutants.ts';
import { type Outcome, randomMode, type ScanMode, scanOutcome } from './fuzz-scan.ts';

export interface FuzzOrder {
  readonly seed: number;
  readonly folder: string | undefined;
  /** Mutants [from, to). */
  readonly from: number;
  readonly to: number;
  readonly step: number;
  /** For tests of the watchdog: what to do at a mutant. */
  readonly trip?: { readonly at: number; readonly how: 'hang' | 'crash' };
}

export type FromFuzzWorker =
  | { readonly kind: 'begun'; readonly index: number }
  | { readonly kind: 'done'; readonly counts: Readonly<Record<string, number>>; readonly last: number }
  | { readonly kind: 'finding'; readonly index: number; readonly what: string };

/** Bytes: the cap of the engine; JavaScript's heap, with the bases in it, has one of its own. */
const MEMORY_BYTES = 64 << 20;
/** Bytes that the process may have: both caps, and the runtime. */
const RSS_BYTES_MAX = MEMORY_BYTES + (800 << 20);
/** Milliseconds: a mutant is some kilobytes. */
const MUTANT_MS_MAX = 10_000;
/** Mutants between two looks at whether an untouched file still scans, and at the memory. */
const CHECK_EVERY = 50;

const send = (message: FromFuzzWorker): void => {
  process.send!(message);
};

process.once('message', (order: FuzzOrder) => {
  run(order).then(
    () => process.disconnect(),
    (error: unknown) => {
      console.error(error); // the parent puts it down to the mutant at hand
      process.exit(1);
    },
  );
});
process.on('disconnect', () => process.exit());

async function run({ seed, folder, from, to, step, trip }: FuzzOrder): Promise<void> {
  const bases = new Bases(seed, folder);
  const engine = new ScanEngine({ memoryBytes: MEMORY_BYTES, decoders: 1 });
  const idleBytes = engine.pool.usedBytes;
  const sound = bases.pick(randomOf(seed, 3, 0)).bytes;
  let counts: Record<string, number> = {};
  let current = from;
  const finding = (what: string): void => send({ kind: 'finding', index: current, what });
  process.on('unhandledRejection', (error) => finding(`an unhandled rejection: ${describe(error)}`));
  for (; current < to; current += step) {
    const index = current;
    send({ kind: 'begun', index });
    if (trip?.at === index) await tripOver(trip.how);
    const random = randomOf(seed, 2, index);
    const { bytes, base, changes } = makeMutant(random, bases);
    const mode = randomMode(random);
    const began = performance.now();
    try {
      const outcome = await scanOutcome(engine, bytes, mode);
      count(counts, outcome);
      const unchanged = changes.every((change) => change === UNCHANGED);
      if (unchanged || random.below(5) === 0) await checkAgain(engine, bytes, mode, outcome);
    } catch (error) {
      finding(`${changes.join(', ')} of ${base.name}: ${describe(error)}`);
    }
    const milliseconds = performance.now() - began;
    if (milliseconds > MUTANT_MS_MAX)
      finding(`${changes.join(', ')} of ${base.name} took ${milliseconds.toFixed(0)} ms`);
    const leaked = engine.pool.usedBytes - idleBytes;
    if (leaked !== 0) {
      finding(`${changes.join(', ')} of ${base.name}: ${leaked} bytes of the pool did not come back`);
      break; // the parent starts another process behind this mutant
    }
    if (Math.floor(index / step) % CHECK_EVERY > 0) continue;
    try {
      const mode: ScanMode = { output: 'arrow', stepBytes: 0, options: {} };
      await scanOutcome(engine, sound, mode);
    } catch (error) {
      finding(`after ${base.name} an untouched file does not scan: ${describe(error)}`);
      break;
    }
    const rss = process.memoryUsage.rss();
    if (rss > RSS_BYTES_MAX) finding(`the process has ${rss} bytes`);
    send({ kind: 'done', counts, last: index });
    counts = {};
  }
  send({ kind: 'done', counts, last: current });
  await engine.close();
}

/** The same file in another way must come to the same, rows or none. Throws when it does not. */
async function checkAgain(engine: ScanEngine, bytes: Uint8Array, mode: ScanMode, first: Outcome): Promise<void> {
  const options = { ...mode.options, batchRows: 77, prefetchDepth: 1, maxGap: 0 };
  const other: ScanMode = { ...mode, stepBytes: mode.stepBytes === 0 ? 333 : 0, options };
  const second = await scanOutcome(engine, bytes, other);
  const isMemory = (outcome: Outcome): boolean => outcome.kind === 'refused' && outcome.code === 'MEMORY';
  if (isMemory(first) || isMemory(second)) return; // depends on what else is in memory
  const same =
    first.kind === 'rows' && second.kind === 'rows'
      ? first.rows === second.rows && (!(mode.options.preserveOrder ?? true) || first.digest === second.digest)
      : first.kind === second.kind;
  if (!same) throw new Error(`came to ${JSON.stringify(first)}, then to ${JSON.stringify(second)}`);
}

function count(counts: Record<string, number>, outcome: Outcome): void {
  const name = outcome.kind === 'refused' ? outcome.code : outcome.kind;
  counts[name] = (counts[name] ?? 0) + 1;
}

function describe(error: unknown): string {
  if (error instanceof DecodeError || error instanceof FetchError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

async function tripOver(how: 'hang' | 'crash'): Promise<void> {
  if (how === 'crash') process.abort();
  await new Promise((resolve) => setTimeout(resolve, 1)); // what was said gets out
  for (;;);
}
