/**
 * What an engine's decoders did since it was made, as totals that only grow. The registers of the control block are
 * read destructively; what they gave is added up here, so that any number of readers (an exporter, a scan's report)
 * see the same totals.
 */
import { Codec, codecCounts, Encoding, encodingCounts, PAGE_TALLY_LENGTH, type Pool } from '../../decode/index.ts';
import {
  addStreamProfile,
  newStreamProfile,
  type StreamProfile,
  streamProfileSince,
  takeStreamProfile,
  wallNs,
} from '../../metrics/index.ts';
import { type Bounds, type DecoderBounds, readControlBlock } from './control-block.ts';
import { clock, registerWords } from './decoder-profiler.ts';
import { PageCounters } from './page-counters.ts';

export interface DecoderProfile {
  /** Beats are lines of column chunks that came in; starved wins over stalled where chunks wait for either. */
  readonly input: StreamProfile;
  /** Beats are lines of decoded segments; stalled wins over starved. */
  readonly output: StreamProfile;
  /** Nanoseconds, as at the input; together `wallNs`. */
  readonly busyNs: number;
  readonly starvedNs: number;
  readonly stalledNs: number;
  readonly idleNs: number;
  readonly wallNs: number;
  /** Column chunks that are on it now. */
  readonly flows: number;
  /** Slots of its FIFO that are taken now: chunks asked for their next segment. */
  readonly running: number;
  /** Chunks that wait for a slot now. */
  readonly waiting: number;
}

/** Data pages of one encoding. */
export interface EncodingCounts {
  readonly pages: number;
  /** Values, nulls counted. */
  readonly values: number;
  /** Bytes of the pages, decompressed, levels included. */
  readonly bytes: number;
}

/** Pages of one codec: data pages, and dictionary pages too, except in `values`. */
export interface CodecCounts {
  readonly values: number;
  readonly compressedBytes: number;
  /** The same bytes decompressed. */
  readonly bytes: number;
}

export interface EngineProfile {
  /** By ordinal; zeroes where a decoder has no profiler. */
  readonly decoders: readonly DecoderProfile[];
  /** By the specification's names; only what occurred. */
  readonly encodings: Readonly<Record<string, EncodingCounts>>;
  readonly codecs: Readonly<Record<string, CodecCounts>>;
}

/** What a decoder has at the moment: see `DecoderProfile`. */
export type DecoderLoad = Pick<DecoderProfile, 'flows' | 'running' | 'waiting'>;

interface Watched {
  readonly bounds: DecoderBounds;
  readonly input: StreamProfile;
  readonly output: StreamProfile;
  readonly counters: PageCounters | undefined;
}

export class ProfileReader {
  readonly #words: BigInt64Array<SharedArrayBuffer>;
  readonly #decoders: readonly Watched[];
  readonly #pages = new Float64Array(PAGE_TALLY_LENGTH);
  #closed = false;

  /** Finds the profilers and page counters of the control block at `control`. Throws RangeError for a broken one. */
  constructor(pool: Pool, control: number) {
    const words = registerWords(pool);
    this.#words = words;
    this.#decoders = readControlBlock(pool, control).decoders.map((bounds) => ({
      bounds,
      input: newStreamProfile(),
      output: newStreamProfile(),
      counters: bounds.pages === undefined ? undefined : new PageCounters(words, bounds.pages),
    }));
  }

  /** The totals up to now; `load` by ordinal. */
  read(load: readonly DecoderLoad[]): EngineProfile {
    if (!this.#closed) this.#take();
    return {
      decoders: this.#decoders.map((decoder, ordinal) => profileOf(decoder, load[ordinal]!)),
      encodings: named(Encoding, (encoding) => encodingCounts(this.#pages, encoding)),
      codecs: named(Codec, (codec) => codecCounts(this.#pages, codec)),
    };
  }

  #take(): void {
    const take = (bounds: Bounds | undefined, into: StreamProfile): void => {
      if (bounds !== undefined) addStreamProfile(into, takeStreamProfile(this.#words, bounds.start >>> 3, clock));
    };
    for (const { bounds, input, output, counters } of this.#decoders) {
      take(bounds.input, input);
      take(bounds.output, output);
      counters?.takeInto(this.#pages);
    }
  }

  /** The totals begin anew. */
  reset(): void {
    this.#take();
    for (const decoder of this.#decoders) {
      Object.assign(decoder.input, newStreamProfile());
      Object.assign(decoder.output, newStreamProfile());
    }
    this.#pages.fill(0);
  }

  /** Takes what is there for the last time: the control block goes away, the totals stay. */
  close(): void {
    if (!this.#closed) this.#take();
    this.#closed = true;
  }
}

/** `now` minus `before`, two profiles of the same engine; what a decoder has at the moment is that of `now`. */
export function profileSince(now: EngineProfile, before: EngineProfile): EngineProfile {
  return {
    decoders: now.decoders.map((decoder, k) => {
      const input = streamProfileSince(decoder.input, before.decoders[k]!.input);
      const output = streamProfileSince(decoder.output, before.decoders[k]!.output);
      return profileOf({ input, output }, decoder);
    }),
    encodings: countsSince(now.encodings, before.encodings),
    codecs: countsSince(now.codecs, before.codecs),
  };
}

function countsSince<Counts extends EncodingCounts | CodecCounts>(
  now: Readonly<Record<string, Counts>>,
  before: Readonly<Record<string, Counts>>,
): Record<string, Counts> {
  const differences = Object.entries(now).map(([name, counts]) => {
    const old: Partial<Record<string, number>> = { ...before[name] };
    const since = Object.entries(counts).map(([what, amount]) => [what, amount - (old[what] ?? 0)]);
    return [name, Object.fromEntries(since) as Counts] as const;
  });
  return Object.fromEntries(differences.filter(([, { values, bytes }]) => values > 0 || bytes > 0));
}

function profileOf(
  { input, output }: Pick<Watched, 'input' | 'output'>,
  { flows, running, waiting }: DecoderLoad,
): DecoderProfile {
  const { busyNs, starvedNs, stalledNs, idleNs } = input;
  const times = { busyNs, starvedNs, stalledNs, idleNs, wallNs: wallNs(input) };
  return { input: { ...input }, output: { ...output }, ...times, flows, running, waiting };
}

/** By name, where there is anything. */
function named<Counts extends { readonly bytes: number; readonly values: number }>(
  table: Readonly<Record<string, number>>,
  countsOf: (value: number) => Counts,
): Record<string, Counts> {
  const all = Object.entries(table).map(([name, value]) => [name, countsOf(value)] as const);
  return Object.fromEntries(all.filter(([, { values, bytes }]) => values > 0 || bytes > 0));
}
