/**
 * The end of a file, where the look that found it brought that along: a footer then takes no request of its own. Kept
 * beside the very version object that was found, for as long as that lives or until it is taken; never for another one.
 */
import type { FileVersion } from './transport.ts';

export interface FileTail {
  /** The last bytes of the file, counted as directory. */
  readonly bytes: Uint8Array;
  /** Time from asking to the first word of the answer, milliseconds, without making the connection. */
  readonly latencyMs: number;
}

const tails = new WeakMap<FileVersion, FileTail>();

export function keepTail(file: FileVersion, tail: FileTail): void {
  tails.set(file, tail);
}

/** The tail that came with this version, once. */
export function takeTail(file: FileVersion): FileTail | undefined {
  const tail = tails.get(file);
  tails.delete(file);
  return tail;
}
