/** What every command is given, and what most of them need: sources that close, short texts on standard output. */

import type { DiskCache, FetchError, FileVersion, TransportOutcome } from '../../fetcher/index.ts';
import { openSource, type Source } from '../../vfs/index.ts';
import { formatCount } from '../argument.ts';
import { CommandError } from '../errors.ts';
import type { OptionOrigins, OptionValues } from '../options.ts';
import { writeStdout } from '../output/output.ts';
import { printable } from '../output/printable.ts';
import { sourceAccess } from '../source-options.ts';
import { withDiskCache } from './disk-cache.ts';
import type { Interruption } from './interruption.ts';
import { SKIPPED_SHOWN_MAX } from './limits.ts';

export interface CommandContext {
  readonly operands: readonly string[];
  readonly options: OptionValues;
  readonly origins: OptionOrigins;
  readonly interruption: Interruption;
}

/** Opens the source of a URL for `work`; it closes at the end, and at once when the command is interrupted. */
export async function withSource<T>(
  url: string,
  context: CommandContext,
  work: (source: Source) => Promise<T>,
): Promise<T> {
  const { options, origins } = context;
  return withDiskCache(options, origins, (cache) => withCachedSource(url, context, cache, work));
}

async function withCachedSource<T>(
  url: string,
  { options, interruption }: CommandContext,
  diskCache: DiskCache | undefined,
  work: (source: Source) => Promise<T>,
): Promise<T> {
  const skipped: string[] = [];
  const source = await openSource(url, {
    retry: { onRetry: tellFirst((line) => tellDone(`trying again: ${line}`, options)) },
    onSkipped: (path, reason) => skipped.push(`skipped: ${path}: ${reason}`),
    ...(diskCache === undefined ? {} : { diskCache }),
    ...sourceAccess(options),
    onTransport: (text, outcome) => tellTransport(text, outcome, options),
    onUnpinned: (path, reason) => process.stderr.write(`${printable(`${path}: ${reason}`)}\n`),
  });
  const onAbort = (): void => void source.close().catch(() => {});
  interruption.signal.addEventListener('abort', onAbort, { once: true });
  if (interruption.signal.aborted) onAbort();
  try {
    return await work(source);
  } finally {
    interruption.signal.removeEventListener('abort', onAbort);
    await source.close();
    tellSkipped(skipped);
  }
}

/** That RDMA is used is for who watches; that it is not, where it could be or was asked for, is for everybody. */
function tellTransport(text: string, outcome: TransportOutcome, options: OptionValues): void {
  if (outcome === 'rdma') tellDone(text, options);
  else if (outcome === 'tcp' || options.transport !== undefined) process.stderr.write(`${printable(text)}\n`);
}

/** Tells only the first of many errors. */
function tellFirst(tell: (line: string) => void): (error: FetchError) => void {
  let told = false;
  return ({ reason }) => {
    if (!told) tell(reason);
    told = true;
  };
}

/** What a listing left out is told behind what came of the rest. */
function tellSkipped(lines: readonly string[]): void {
  for (const line of lines.slice(0, SKIPPED_SHOWN_MAX)) process.stderr.write(`${printable(line)}\n`);
  const more = lines.length - SKIPPED_SHOWN_MAX;
  if (more > 0) process.stderr.write(`skipped: ${formatCount(more)} more\n`);
}

/** `--align`. Throws CommandError USAGE. */
export function checkedAlign({ align }: OptionValues): number | undefined {
  if (align === undefined || Number.isInteger(Math.log2(align))) return align;
  throw new CommandError('USAGE', `--align ${align}: expected a power of two`);
}

/** One JSON value on a line of its own. */
export async function printJson(value: unknown): Promise<void> {
  await writeStdout(`${JSON.stringify(value)}\n`);
}

/** A word about what was or is done, for a person who watches: on a terminal only, and not beside JSON. */
export function tellDone(line: string, { json }: OptionValues): void {
  if (process.stderr.isTTY && !json) process.stderr.write(`${printable(line)}\n`);
}

/** The one file of a location. Throws CommandError USAGE when there are more. */
export async function onlyFile(source: Source): Promise<FileVersion> {
  const files = await source.list();
  const first = files[0]!;
  if (files.length === 1) return first;
  throw new CommandError(
    'USAGE',
    `${source.location.text} is ${files.length} files: name one, such as ${source.shown(first.path)}`,
  );
}
