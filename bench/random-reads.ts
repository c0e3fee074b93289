/** Reads of 64 KiB here and there in a file, each timed, with a checksum of all that was read. */
import { crc32 } from 'node:zlib';

const READ_BYTES = 64 * 1024;

export interface RandomReads {
  /** Milliseconds of each read, in order. */
  readonly times: readonly number[];
  /** CRC-32 of all bytes, which does not depend on who read them. */
  readonly crc: number;
}

export interface RandomPlan {
  readonly fileBytes: number;
  readonly reads: number;
  readonly seed: number;
}

export async function randomReads(
  { fileBytes, reads, seed }: RandomPlan,
  read: (offset: number, into: Uint8Array) => void | Promise<void>,
): Promise<RandomReads> {
  const into = new Uint8Array(READ_BYTES);
  const blocks = Math.floor(fileBytes / READ_BYTES);
  const times: number[] = [];
  let state = seed >>> 0;
  let crc = 0;
  for (let k = 0; k < reads; k++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const offset = Math.floor((state / 2 ** 32) * blocks) * READ_BYTES;
    const began = performance.now();
    const waits = read(offset, into);
    if (waits !== undefined) await waits;
    times.push(performance.now() - began);
    crc = crc32(into, crc);
  }
  return { times, crc };
}
