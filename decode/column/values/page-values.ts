/**
 * Values of one data page, decoded densely to the window: one decoder per encoding behind one interface. Each is
 * resumable: it consumes up to the section's mark and says whether it needs more.
 */
import type { Kernels } from '../../kernels/kernels.ts';
import type { Pool } from '../../pool/pool.ts';
import type { Section } from '../section.ts';
import type { SegmentLayout } from '../spec.ts';

/** Addresses of kernel states that belong to one decoder. */
export interface DecoderStates {
  readonly boolRuns: number;
  readonly bytes: number;
  readonly hybrid: number;
  readonly delta: number;
}

/** The chunk's dictionary as page decoders see it. */
export interface LoadedDictionary {
  readonly count: number;
  /** Address of fixed-width entries; 0 for byte arrays. */
  readonly values: number;
}

export interface PageContext {
  readonly pool: Pool;
  readonly kernels: Kernels;
  readonly states: DecoderStates;
  readonly section: Section;
  /** Address of the first byte of the values. */
  readonly start: number;
  /** Bytes of a value as it is stored. */
  readonly width: number;
}

/** Beside DONE, NEED and FULL: scratch memory did not fit; nothing was consumed, ask again when some was freed. */
export const NO_MEMORY = 3;

/** Where decoded values go: addresses stay as they are for the life of the object, `dense` counts what is written. */
export interface ValueTarget {
  /** Values, bits, or offsets (the first of which is written). */
  readonly values: number;
  /** Room for the data of byte arrays. */
  readonly dataStart: number;
  readonly dataEnd: number;
  /** Values (nulls left out) that have been written. */
  dense: number;
}

export interface PageValues {
  /** The layout of the window that these values go to. */
  readonly layout: SegmentLayout;
  /** Appends up to `count` values to the window, advancing its `dense`. DONE, NEED, FULL or NO_MEMORY; throws on bad input. */
  decode(window: ValueTarget, count: number): number;
  /** After FULL: bytes of the value that did not fit. */
  needBytes?(): number;
  /** The window is about to be given out or given up: what of it is still needed must be kept. */
  leaveWindow?(): void;
  /** Every value that the page's levels have has been decoded: throws when the values say that there are more. */
  end?(): void;
  /** Gives back scratch memory. */
  close(): void;
}

export function readU32(pool: Pool, address: number): number {
  const { u8 } = pool;
  return (u8[address]! | (u8[address + 1]! << 8) | (u8[address + 2]! << 16) | (u8[address + 3]! << 24)) >>> 0;
}
