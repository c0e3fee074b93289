/**
 * The control block: a register file in shared memory that describes itself. A header with the system's id comes
 * first, then a table of sub-configurations (decoders, the fetcher, profilers, page counters), each with the bounds of
 * its registers. Scheduler, decoder threads and exporter know nothing of an engine but this block's address: they read
 * the table and find what there is, whatever the number, the order and the place of it. Kinds that a reader does not
 * know are passed over. The layout is in ARCHITECTURE.md.
 *
 * The block lies in memory that every thread and kernel can write: each bound is checked when the table is read, so
 * that no register is ever looked for outside the block or inside another one's. What the registers mean is said where
 * they are used (`decoder-queue.ts`, `fetcher-registers.ts`, metrics/stream-profiler.ts, `page-counters.ts`).
 */
import type { Pool } from '../../decode/index.ts';
import { PROFILER_BYTES } from '../../metrics/index.ts';
import { CONTROL_ENTRIES_MAX, DECODERS_MAX, FLOWS_MAX, STREAM_FIFO_SLOTS } from '../limits.ts';

/** "QANT", in the order of its bytes. */
const SYSTEM_ID = 0x544e4151;
const LAYOUT_VERSION = 1;
/** Bytes: registers of different writers never share a cache line. */
const LINE = 64;

/** Header: words from the block's start. */
const HEADER = { system: 0, version: 1, blockBytes: 2, table: 3, entries: 4, entryBytes: 5 } as const;
/** An entry of the table: words from its start. `start` and `end` are bytes from the block's start. */
const ENTRY = { kind: 0, ordinal: 1, start: 2, end: 3, decoder: 4, port: 5 } as const;
const ENTRY_BYTES = 32;

export const Kind = { DECODER: 1, FETCHER: 2, PROFILER: 3, PAGE_COUNTERS: 4 } as const;
export const Port = { INPUT: 0, OUTPUT: 1 } as const;

/** Bytes of registers before a decoder's FIFO, and before the fetcher's marks. */
export const DECODER_REGISTERS_BYTES = 2 * LINE;
export const FETCHER_REGISTERS_BYTES = LINE;
/** Values, bytes and so on by encoding and codec: see `page-counters.ts`. */
export const PAGE_COUNTERS_BYTES = 8 * LINE;

/** What is to be in a block. */
export interface SubConfiguration {
  readonly kind: number;
  readonly ordinal: number;
  readonly bytes: number;
  /** Of a profiler or page counters: the ordinal of the decoder that they watch. */
  readonly decoder?: number;
  /** Of a profiler. */
  readonly port?: number;
}

/** Addresses in the pool: [start, end). */
export interface Bounds {
  readonly start: number;
  readonly end: number;
}

export interface DecoderBounds extends Bounds {
  readonly ordinal: number;
  /** Absent in an engine that has none. */
  readonly input?: Bounds;
  readonly output?: Bounds;
  readonly pages?: Bounds;
}

export interface ControlBlock extends Bounds {
  /** By ordinal. */
  readonly decoders: readonly DecoderBounds[];
  readonly fetcher: Bounds;
}

/** What an engine of that many decoders has, with profilers and page counters or without. */
export function planControlBlock(decoders: number, profiled: boolean): SubConfiguration[] {
  const plan: SubConfiguration[] = [{ kind: Kind.FETCHER, ordinal: 0, bytes: FETCHER_REGISTERS_BYTES + FLOWS_MAX * 4 }];
  for (let decoder = 0; decoder < decoders; decoder++) {
    plan.push({ kind: Kind.DECODER, ordinal: decoder, bytes: DECODER_REGISTERS_BYTES + STREAM_FIFO_SLOTS * 4 });
    if (!profiled) continue;
    const { INPUT, OUTPUT } = Port;
    const profiler = { kind: Kind.PROFILER, bytes: PROFILER_BYTES, decoder };
    plan.push(
      { ...profiler, ordinal: decoder * 2, port: INPUT },
      { ...profiler, ordinal: decoder * 2 + 1, port: OUTPUT },
    );
    plan.push({ kind: Kind.PAGE_COUNTERS, ordinal: decoder, bytes: PAGE_COUNTERS_BYTES, decoder });
  }
  return plan;
}

/** Makes a block in the pool, its registers zero, in the order of `plan`. Throws RangeError when it does not fit. */
export function layControlBlock(pool: Pool, plan: readonly SubConfiguration[]): Bounds {
  const table = LINE;
  let bytes = roundUp(table + plan.length * ENTRY_BYTES);
  const places = plan.map((one) => {
    const start = bytes;
    bytes = roundUp(start + one.bytes);
    return { ...one, start, end: start + one.bytes };
  });
  const address = pool.allocate(bytes);
  if (address === 0) throw new RangeError(`the memory cap leaves no room for ${bytes} bytes of the control block`);
  const { u32 } = pool;
  const base = address >>> 2;
  u32.fill(0, base, base + (bytes >>> 2));
  u32[base + HEADER.version] = LAYOUT_VERSION;
  u32[base + HEADER.blockBytes] = bytes;
  u32[base + HEADER.table] = table;
  u32[base + HEADER.entries] = plan.length;
  u32[base + HEADER.entryBytes] = ENTRY_BYTES;
  for (const [k, { kind, ordinal, start, end, decoder = 0, port = 0 }] of places.entries()) {
    u32.set([kind, ordinal, start, end, decoder, port], base + ((table + k * ENTRY_BYTES) >>> 2));
  }
  u32[base + HEADER.system] = SYSTEM_ID;
  return { start: address, end: address + bytes };
}

interface Entry extends Bounds {
  readonly kind: number;
  readonly ordinal: number;
  readonly decoder: number;
  readonly port: number;
}

/** Reads the block at `address`. Throws RangeError for one that contradicts itself or leads outside of itself. */
export function readControlBlock(pool: Pool, address: number): ControlBlock {
  const { entries, ...bounds } = readTable(pool, address);
  checkApart(entries);
  const ofKind = (kind: number): Entry[] => entries.filter((entry) => entry.kind === kind);
  const [fetcher, ...more] = ofKind(Kind.FETCHER);
  check(fetcher !== undefined && more.length === 0, 'it has not one fetcher');
  const decoders = ofKind(Kind.DECODER).sort((a, b) => a.ordinal - b.ordinal);
  check(decoders.length > 0 && decoders.length <= DECODERS_MAX, `it has ${decoders.length} decoders`);
  const watchers = decoders.map((): { input?: Bounds; output?: Bounds; pages?: Bounds } => ({}));
  const watch = (entry: Entry, what: 'input' | 'output' | 'pages'): void => {
    const watched = watchers[entry.decoder];
    check(watched !== undefined, `${what} of decoder ${entry.decoder}, which there is not`);
    check(watched[what] === undefined, `decoder ${entry.decoder} has two of ${what}`);
    watched[what] = { start: entry.start, end: entry.end };
  };
  for (const [k, decoder] of decoders.entries()) {
    check(decoder.ordinal === k, `decoder ${k} is missing or there twice`);
    const slots = (decoder.end - decoder.start - DECODER_REGISTERS_BYTES) / 4;
    check(Number.isInteger(Math.log2(slots)), `a FIFO of ${slots} slots`); // the ring's positions wrap at a power of two
  }
  for (const profiler of ofKind(Kind.PROFILER)) {
    check(profiler.port === Port.INPUT || profiler.port === Port.OUTPUT, `a profiler of port ${profiler.port}`);
    watch(profiler, profiler.port === Port.INPUT ? 'input' : 'output');
  }
  for (const counters of ofKind(Kind.PAGE_COUNTERS)) watch(counters, 'pages');
  return {
    ...bounds,
    decoders: decoders.map(({ ordinal, start, end }, k) => ({ ordinal, start, end, ...watchers[k]! })),
    fetcher: { start: fetcher.start, end: fetcher.end },
  };
}

function readTable(pool: Pool, address: number): Bounds & { readonly entries: readonly Entry[] } {
  const memoryBytes = pool.u8.length;
  check(Number.isInteger(address) && address > 0 && address % LINE === 0, `its address is ${address}`);
  check(address + LINE <= memoryBytes, 'it begins at the end of the memory');
  const header = pool.u32.slice(address >>> 2, (address + LINE) >>> 2);
  const word = (at: number): number => header[at]!;
  check(word(HEADER.system) === SYSTEM_ID, `its system id is 0x${word(HEADER.system).toString(16)}`);
  check(word(HEADER.version) === LAYOUT_VERSION, `its layout is of version ${word(HEADER.version)}`);
  const blockBytes = word(HEADER.blockBytes);
  check(blockBytes >= LINE && blockBytes <= memoryBytes - address, `it has ${blockBytes} bytes`);
  const [table, count, entryBytes] = [word(HEADER.table), word(HEADER.entries), word(HEADER.entryBytes)];
  check(count <= CONTROL_ENTRIES_MAX, `its table has ${count} entries`);
  check(entryBytes >= ENTRY_BYTES && entryBytes <= LINE && entryBytes % 4 === 0, `entries of ${entryBytes} bytes`);
  check(table >= LINE && table % 4 === 0 && table + count * entryBytes <= blockBytes, `its table is at ${table}`);
  const entries: Entry[] = [];
  for (let k = 0; k < count; k++) {
    const at = (address + table + k * entryBytes) >>> 2;
    const words = pool.u32.slice(at, at + entryBytes / 4);
    const [start, end] = [words[ENTRY.start]!, words[ENTRY.end]!];
    const kind = words[ENTRY.kind]!;
    check(start % LINE === 0 && start >= table + count * entryBytes, `entry ${k} begins at ${start}`);
    check(end >= start && end <= blockBytes, `entry ${k} ends at ${end}`);
    const least = LEAST_BYTES[kind] ?? 0;
    check(end - start >= least, `entry ${k} has ${end - start} bytes where it needs ${least}`);
    const { ordinal, decoder, port } = ENTRY;
    entries.push({
      kind,
      start: address + start,
      end: address + end,
      ordinal: words[ordinal]!,
      decoder: words[decoder]!,
      port: words[port]!,
    });
  }
  return { start: address, end: address + blockBytes, entries };
}

/** Bytes that the registers of a kind need: a slot and a mark at least. */
const LEAST_BYTES: Readonly<Record<number, number>> = {
  [Kind.DECODER]: DECODER_REGISTERS_BYTES + 4,
  [Kind.FETCHER]: FETCHER_REGISTERS_BYTES + 4,
  [Kind.PROFILER]: PROFILER_BYTES,
  [Kind.PAGE_COUNTERS]: PAGE_COUNTERS_BYTES,
};

/** Registers of one are never those of another. */
function checkApart(entries: readonly Entry[]): void {
  const inOrder = [...entries].sort((a, b) => a.start - b.start || a.end - b.end);
  for (const [k, entry] of inOrder.entries()) {
    const next = inOrder[k + 1];
    check(next === undefined || entry.end <= next.start, 'two of its entries overlap');
  }
}

function check(holds: boolean, problem: string): asserts holds {
  if (!holds) throw new RangeError(`the control block is broken: ${problem}`);
}

const roundUp = (bytes: number): number => Math.ceil(bytes / LINE) * LINE;
