/** `--cache-dir` and `--cache-size`: the disk cache of a command that reads a source. */
import { resolve } from 'node:path';
import { CACHE_BYTES_DEFAULT, DiskCache, type DiskCacheOptions } from '../../fetcher/index.ts';
import { CommandError } from '../errors.ts';
import type { OptionOrigins, OptionValues } from '../options.ts';
import { printable } from '../output/printable.ts';

/** What the options ask for; undefined for no cache. Throws CommandError USAGE. */
export function cacheSettings(
  { cacheDir, cacheSize }: OptionValues,
  origins: OptionOrigins,
): Pick<DiskCacheOptions, 'folder' | 'bytes'> | undefined {
  if (cacheDir !== undefined && cacheDir !== '') {
    return { folder: resolve(cacheDir), bytes: cacheSize ?? CACHE_BYTES_DEFAULT };
  }
  if (origins.cacheSize === 'flag') throw new CommandError('USAGE', '--cache-size is that of a --cache-dir: name one');
  return undefined;
}

/** Opens the cache for `work`, and writes what waits to be written at its end. */
export async function withDiskCache<T>(
  options: OptionValues,
  origins: OptionOrigins,
  work: (cache: DiskCache | undefined) => Promise<T>,
): Promise<T> {
  const settings = cacheSettings(options, origins);
  if (settings === undefined) return work(undefined);
  const onTrouble = (reason: string): void => void process.stderr.write(`${printable(reason)}\n`);
  const cache = await DiskCache.open({ ...settings, onTrouble });
  try {
    return await work(cache);
  } finally {
    await cache.close();
  }
}
