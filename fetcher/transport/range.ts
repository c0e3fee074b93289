/** Checks that every transport makes before a read. */
import { FetchError } from '../errors.ts';
import type { FileVersion } from './transport.ts';

/** Throws OUT_OF_RANGE unless [start, start + length) lies in the file. */
export function checkRange(file: FileVersion, start: number, length: number): void {
  if (!Number.isSafeInteger(start) || start < 0 || start > file.length || length > file.length - start) {
    throw new FetchError('OUT_OF_RANGE', `${length} bytes at ${start} of ${file.path}, which has ${file.length}`);
  }
}

/** Throws CANCELLED if the caller has given up already. */
export function throwIfCancelled(file: FileVersion, signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new FetchError('CANCELLED', file.path);
}
