/**
 * The codec seam: whole-page decompression for the codecs that have no kernel of ours. Snappy and LZ4 have one and are
 * not here. Every implementation is a kept library; sizes are checked before and after, since a page's declared size
 * is the writer's word.
 */
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import { DecodeError } from '../errors.ts';
import { Codec, nameOf } from '../format/enums.ts';
import { GZIP_RATIO_MAX, LZ4_RATIO_MAX, SNAPPY_RATIO_MAX, ZSTD_FRAMES_MAX } from '../limits.ts';
import { decompressPage } from './zlib-pages.ts';

/** Bytes of a compressed page in, `size` bytes at most out, or an exception of any kind. */
type Decompress = (source: Uint8Array, size: number) => Uint8Array;

/** By documented calls; used where zlib-pages.ts finds no engine. zlib's own limit stops a bomb while it inflates. */
const DECOMPRESS: Partial<Record<number, Decompress>> = {
  [Codec.GZIP]: (source, size) => gunzipSync(source, bounds(size)),
  [Codec.BROTLI]: (source, size) => brotliDecompressSync(source, bounds(size)),
  [Codec.ZSTD]: decompressZstdFrames,
};
/** Neither may be 0; output in one piece needs no putting together. */
const bounds = (size: number) => ({ maxOutputLength: Math.max(1, size), chunkSize: Math.max(64, size) });

/** Those that a kernel decompresses. */
const KERNEL_CODECS: readonly number[] = [Codec.SNAPPY, Codec.LZ4_RAW, Codec.LZ4];

/** Most bytes that one compressed byte can become; codecs without such a bound are limited by the memory cap alone. */
const RATIO_MAX: Partial<Record<number, number>> = {
  [Codec.SNAPPY]: SNAPPY_RATIO_MAX,
  [Codec.GZIP]: GZIP_RATIO_MAX,
  [Codec.LZ4_RAW]: LZ4_RATIO_MAX,
  [Codec.LZ4]: LZ4_RATIO_MAX,
};

/** Throws UNSUPPORTED for a codec that this version does not read. */
export function checkCodec(codec: number): void {
  if (codec === Codec.UNCOMPRESSED || KERNEL_CODECS.includes(codec) || DECOMPRESS[codec] !== undefined) return;
  throw new DecodeError('UNSUPPORTED', `codec ${nameOf(Codec, codec)} is not supported`, {
    expected: 'UNCOMPRESSED, SNAPPY, GZIP, BROTLI, ZSTD, LZ4 or LZ4_RAW',
  });
}

/** Throws CODEC when `compressed` bytes can't possibly become `size` bytes: seen before anything is allocated. */
export function checkRatio(codec: number, compressed: number, size: number): void {
  const ratio = RATIO_MAX[codec];
  if (ratio !== undefined && size > compressed * ratio + 64) {
    throw new DecodeError('CODEC', `${compressed} ${nameOf(Codec, codec)} bytes can't become the declared ${size}`);
  }
}

/** Decompresses a whole page of `codec` into `target`, whose length is the declared size. Throws CODEC. */
export function decompressInto(codec: number, source: Uint8Array, target: Uint8Array, byEngine = true): void {
  const decompress = DECOMPRESS[codec];
  if (decompress === undefined) throw new DecodeError('UNSUPPORTED', `codec ${nameOf(Codec, codec)}`);
  if (source.length === 0 && target.length === 0) return;
  let made: number | undefined;
  try {
    if (byEngine) made = decompressPage(codec, source, target);
    if (made === undefined) {
      const result = decompress(source, target.length);
      made = result.length;
      if (made <= target.length) target.set(result);
    }
  } catch (error) {
    throw new DecodeError('CODEC', `${nameOf(Codec, codec)} page does not decompress: ${messageOf(error)}`, {
      expected: `${target.length} bytes`,
    });
  }
  if (made !== target.length) {
    throw new DecodeError('CODEC', `${nameOf(Codec, codec)} page decompresses to ${made} bytes`, {
      expected: `${target.length} bytes`,
    });
  }
}

/** The parts of a zlib call with `info: true`, which has no type of its own. */
interface FrameResult {
  readonly buffer: Uint8Array;
  readonly engine: { readonly bytesWritten: number };
}

/** A page may be several frames (RFC 8878, section 3); the library stops after the first. */
function decompressZstdFrames(source: Uint8Array, size: number): Uint8Array {
  const parts: Uint8Array[] = [];
  let made = 0;
  for (let at = 0; at === 0 || (at < source.length && made < size); ) {
    if (parts.length === ZSTD_FRAMES_MAX) throw new Error(`more than ${ZSTD_FRAMES_MAX} frames`);
    const options = { info: true, ...bounds(size - made) };
    const { buffer, engine } = zstdDecompressSync(source.subarray(at), options) as unknown as FrameResult;
    parts.push(buffer);
    made += buffer.length;
    at += Math.max(1, engine.bytesWritten);
  }
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts, made);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
