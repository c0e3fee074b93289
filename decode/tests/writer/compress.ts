/** Page compression for the test writer, by libraries other than those that decode where there are any. */
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from 'node:zlib';
import { compressSync as lz4CompressSync } from 'lz4-napi';
import { compressSync as snappyCompressSync } from 'snappy';
import { Codec } from '../../format/enums.ts';

/** Every codec that has a compressor here. */
export const CODECS: readonly Codec[] = [
  Codec.UNCOMPRESSED,
  Codec.SNAPPY,
  Codec.GZIP,
  Codec.BROTLI,
  Codec.ZSTD,
  Codec.LZ4_RAW,
];

export function compress(codec: number, bytes: Uint8Array): Uint8Array {
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
      // the library puts the size in front, which a raw block does not have
      return Uint8Array.from(lz4CompressSync(Buffer.from(bytes))).subarray(4);
    default:
      return bytes; // also for codecs that exist in a footer only
  }
}
