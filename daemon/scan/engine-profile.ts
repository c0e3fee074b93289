/**
 * What an engine's decoders did since it was made, as totals that only grow. The registers of the control block are
 * read destructively; what they gave is added up here, so that any number of readers (an exporter, a scan's report)
 * see the same totals.
 */
import type { StreamProfile } from '../../metrics/index.ts';

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
  pages: number;
  /** Values, nulls counted. */
  values: number;
  /** Bytes of the pages, decompressed, levels included. */
  bytes: number;
}

/** Pages of one codec: data pages, and dictionary pages too, except in `values`. */
export interface CodecCounts {
  values: number;
  compressedBytes: number;
  /** The same bytes decompressed. */
  bytes: number;
}

export interface EngineProfile {
  /** By ordinal. Empty when the engine has no profilers. */
  readonly decoders: readonly DecoderProfile[];
  /** By the specification's names; only what occurred. */
  readonly encodings: Readonly<Record<string, EncodingCounts>>;
  readonly codecs: Readonly<Record<string, CodecCounts>>;
}
