/**
 * A file's footer over any transport: one read of its tail, none where finding the file brought that along, and one more
 * only when the footer is larger. Errors of the format name the file; those of the transport already do.
 */
import type { FileMetadata } from '../decode/index.ts';
import { DecodeError, parseFooter, parseTail } from '../decode/index.ts';
import { FOOTER_TAIL_BYTES } from './limits.ts';
import { takeTail } from './transport/file-tail.ts';
import type { FileVersion, Transport } from './transport/transport.ts';

export interface FetchedFooter {
  readonly metadata: FileMetadata;
  /** The Thrift bytes that the metadata was parsed from. */
  readonly thrift: Uint8Array;
  /** Reads, and their bytes, all of them from the end of the file; not what came when the file was found. */
  readonly requests: number;
  readonly bytes: number;
  /** What the first request for it took, milliseconds. */
  readonly latencyMs: number;
}

/** Bytes of the smallest tail that tells where the footer is. */
const TAIL_BYTES_MIN = 8;

export async function fetchFooter(
  transport: Transport,
  file: FileVersion,
  options: { readonly tailBytes?: number; readonly signal?: AbortSignal } = {},
): Promise<FetchedFooter> {
  const read = options.signal === undefined ? {} : { signal: options.signal };
  const { length } = file;
  const found = takeTail(file);
  const isFound = found !== undefined && found.bytes.length >= Math.min(length, TAIL_BYTES_MIN);
  const tailBytes = Math.min(length, Math.max(TAIL_BYTES_MIN, options.tailBytes ?? FOOTER_TAIL_BYTES));
  const tail = isFound ? found.bytes : new Uint8Array(tailBytes);
  const tailStart = length - tail.length;
  let requests = 0;
  let bytes = 0;
  const began = performance.now();
  if (tail.length > 0 && !isFound) {
    await transport.read(file, tailStart, tail, read);
    requests++;
    bytes += tail.length;
  }
  const latencyMs = isFound ? found.latencyMs : performance.now() - began;
  try {
    const { footerStart, footerLength } = parseTail(tail, length);
    if (footerStart >= tailStart) {
      const at = footerStart - tailStart;
      // Statistics are views of these bytes: a copy, so that they do not keep a large tail in memory.
      const footer = tail.slice(at, at + footerLength);
      return { metadata: parseFooter(footer, length), thrift: footer, requests, bytes, latencyMs };
    }
    // not zeroed: the read fills it or fails
    const footer = new Uint8Array(Buffer.allocUnsafeSlow(footerLength).buffer);
    const missing = footer.subarray(0, tailStart - footerStart);
    footer.set(tail.subarray(0, footerLength - missing.length), missing.length);
    await transport.read(file, footerStart, missing, read);
    requests++;
    bytes += missing.length;
    return { metadata: parseFooter(footer, length), thrift: footer, requests, bytes, latencyMs };
  } catch (error) {
    if (error instanceof DecodeError) throw error.located({ file: file.path });
    throw error;
  }
}
