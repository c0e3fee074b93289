/** Page compression for the test writer, by libraries other than those that decode where there are any. */
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from 'node:zlib';
import { compressSync as lz4CompressSync } from 'lz4-napi';
import { compressSync as snappyCompressSync } from 'snappy';
import { Codec } from '../../format/enums.ts';
import { join } from './value.ts';

/** Every codec that has a compressor here. */
export const CODECS: readonly Codec[] = [
  Codec.UNCOMPRESSED,
  Codec.SNAPPY,
  Codec.GZIP,
  Codec.BROTLI,
  Codec.ZSTD,
  Codec.LZ4_RAW,
  Codec.LZ4,
];

/** How a page's bytes are cut for compression; of the codecs that allow only one way it is that. */
export type Framing =
  | 'one' // one member or frame; LZ4 in one frame of Hadoop's
  | 'several' // gzip members, zstd frames, Hadoop's LZ4 frames
  | 'bare'; // LZ4 as a block without a frame

export function compress(codec: number, bytes: Uint8Array, framing: Framing = 'one'): Uint8Array {
  const cut = [0, Math.floor(bytes.length / 3), Math.floor(bytes.length / 2), bytes.length];
  const pieces = framing === 'several' ? cut.slice(1).map((end, i) => bytes.subarray(cut[i]!, end)) : [bytes];
  if (codec === Codec.LZ4 && framing !== 'bare') return join(pieces.map(hadoopFrame));
  if (codec !== Codec.GZIP && codec !== Codec.ZSTD) return compressBlock(codec, bytes);
  return join(pieces.map((piece) => compressBlock(codec, piece)));
}

/** Both sizes, big-endian, decompressed first, and a block. */
function hadoopFrame(bytes: Uint8Array): Uint8Array {
  const block = compressBlock(Codec.LZ4, bytes);
  const sizes = new Uint8Array(8);
  new DataView(sizes.buffer).setUint32(0, bytes.length);
  new DataView(sizes.buffer).setUint32(4, block.length);
  return join([sizes, block]);
}

function compressBlock(codec: number, bytes: Uint8Array): Uint8Array {
  switch (codec) {
    case Codec.SNAPPY:
      return Uint8Array.from(snappyCompressSync(Buffer.from(bytes)));
    case Codec.GZIP:
      return Uint8Array.from(gzipSync(bytes));
    case Codec.BROTLI:
      return Uint8Array.from(brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }));
    case Codec.ZSTD:
      return Uint8Array.from(zstdCompressSync(bytes));
    case Codec.LZ4_RAW:
    case Codec.LZ4:
      // the library puts the size in front, which a raw block does not have
      return Uint8Array.from(lz4CompressSync(Buffer.from(bytes))).subarray(4);
    default:
      return bytes; // also for codecs that exist in a footer only
  }
}
