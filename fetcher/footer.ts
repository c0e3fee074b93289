/**
 * A file's footer over any transport: one read of its tail, and a second one only when the footer is larger than
 * that. Errors of the format name the file; those of the transport already do.
 */
import type { FileMetadata } from '../decode/index.ts';
import { DecodeError, parseFooter, parseTail } from '../decode/index.ts';
import { FOOTER_TAIL_BYTES } from './limits.ts';
import type { FileVersion, Transport } from './transport/transport.ts';

export interface FetchedFooter {
  readonly metadata: FileMetadata;
  /** The Thrift bytes that the metadata was parsed from. */
  readonly thrift: Uint8Array;
  readonly requests: number;
  /** Bytes read, all of them from the end of the file. */
  readonly bytes: number;
  /** What the first request for it took, milliseconds. */
  readonly latencyMs: number;
}

export interface FooterOptions {
  readonly tailBytes?: number;
  /** The file's end, where that is known already. */
  readonly tail?: Uint8Array | undefined;
  /** What that took to come, milliseconds. */
  readonly tailMs?: number | undefined;
  readonly signal?: AbortSignal;
}

/** Bytes of the smallest tail that tells where the footer is. */
const TAIL_BYTES_MIN = 8;

export async function fetchFooter(
  transport: Transport,
  file: FileVersion,
  options: FooterOptions = {},
): Promise<FetchedFooter> {
  const read = options.signal === undefined ? {} : { signal: options.signal };
  const { length } = file;
  const tailBytes = Math.min(length, Math.max(TAIL_BYTES_MIN, options.tailBytes ?? FOOTER_TAIL_BYTES));
  const known = options.tail !== undefined && options.tail.length >= Math.min(length, TAIL_BYTES_MIN);
  const tail = known ? options.tail! : new Uint8Array(tailBytes);
  const tailStart = length - tail.length;
  let requests = 0;
  const began = performance.now();
  if (!known && tail.length > 0) {
    await transport.read(file, tailStart, tail, read);
    requests++;
  }
  const latencyMs = (known ? options.tailMs : undefined) ?? performance.now() - began;
  try {
    const { footerStart, footerLength } = parseTail(tail, length);
    if (footerStart >= tailStart) {
      const at = footerStart - tailStart;
      // Statistics are views of these bytes: a copy, so that they do not keep a large tail in memory.
      const footer = tail.slice(at, at + footerLength);
      return { metadata: parseFooter(footer, length), thrift: footer, requests, bytes: tail.length, latencyMs };
    }
    // not zeroed: the read fills it or fails
    const footer = new Uint8Array(Buffer.allocUnsafeSlow(footerLength).buffer);
    const missing = footer.subarray(0, tailStart - footerStart);
    footer.set(tail.subarray(0, footerLength - missing.length), missing.length);
    await transport.read(file, footerStart, missing, read);
    requests++;
    const bytes = tail.length + missing.length;
    return { metadata: parseFooter(footer, length), thrift: footer, requests, bytes, latencyMs };
  } catch (error) {
    if (error instanceof DecodeError) throw error.located({ file: file.path });
    throw error;
  }
}
