/**
 * What the scheduler and its decoder streams say to each other. Everything is plain data; bytes stay in the pool and
 * only their addresses travel. Two things are no messages but registers of the control block: that a flow is to run
 * (its number in the decoder's FIFO) and that bytes have arrived (the chunk's mark, in 64-byte lines); after either the
 * decoder's bell is rung.
 */
import type { ChunkSpec, DecodeError, InputPiece, Segment } from '../../decode/index.ts';

/** Handed to a decoder stream when it starts. */
export interface StreamStart {
  readonly memory: WebAssembly.Memory;
  /** Address of the control block, in which everything else is found. */
  readonly control: number;
  /** Which decoder of the block the stream is. */
  readonly ordinal: number;
  readonly verifyChecksums: boolean;
}

export type ToStream =
  /** A new flow: one column chunk. `mark` is the index of its mark's word. */
  | { readonly kind: 'open'; readonly flow: number; readonly spec: ChunkSpec; readonly mark: number }
  | { readonly kind: 'piece'; readonly flow: number; readonly piece: InputPiece }
  /** Give up a flow and everything it holds. */
  | { readonly kind: 'close'; readonly flow: number }
  | { readonly kind: 'exit' };

/** A DecodeError's parts, which survive being posted. */
export interface PostedError {
  readonly code: DecodeError['code'];
  readonly reason: string;
  readonly place: DecodeError['place'];
}

export type FromStream =
  | {
      readonly kind: 'segment';
      readonly flow: number;
      readonly segment: Segment | undefined;
      /** Chunk bytes below this are not needed any more. */
      readonly consumed: number;
      /** Every value is out: the flow is closed and holds nothing. */
      readonly end: boolean;
      /** Milliseconds of decoding since the last message of this flow. */
      readonly busyMs: number;
    }
  /** A piece has been used up while the flow still wants more. */
  | { readonly kind: 'consumed'; readonly flow: number; readonly consumed: number }
  /** A slab of `bytes` did not fit beside the `usedBytes` of the pool then; the flow is idle until it is run again. */
  | {
      readonly kind: 'memory';
      readonly flow: number;
      readonly bytes: number;
      readonly usedBytes: number;
      readonly busyMs: number;
    }
  | { readonly kind: 'error'; readonly flow: number; readonly error: PostedError }
  /** The flow is gone; said once more when a run of it was still in the FIFO, whose slot is free now. */
  | { readonly kind: 'closed'; readonly flow: number };
