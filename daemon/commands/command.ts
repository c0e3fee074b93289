/** What every command is given, and what most of them need: sources that close, short texts on standard output. */
import { openSource, type Source } from '../../vfs/index.ts';
import type { OptionValues } from '../options.ts';
import { writeStdout } from '../output/output.ts';
import type { Interruption } from './interruption.ts';

export interface CommandContext {
  readonly operands: readonly string[];
  readonly options: OptionValues;
  readonly interruption: Interruption;
}

/** Opens the source of a URL for `work`; it closes at the end, and at once when the command is interrupted. */
export async function withSource<T>(
  url: string,
  { options, interruption }: CommandContext,
  work: (source: Source) => Promise<T>,
): Promise<T> {
  const { connections, stallTimeout } = options;
  const source = await openSource(url, {
    ...(connections === undefined ? {} : { connections }),
    ...(stallTimeout === undefined ? {} : { stallMs: stallTimeout }),
  });
  const onAbort = (): void => void source.close().catch(() => {});
  interruption.signal.addEventListener('abort', onAbort, { once: true });
  if (interruption.signal.aborted) onAbort();
  try {
    return await work(source);
  } finally {
    interruption.signal.removeEventListener('abort', onAbort);
    await source.close();
  }
}

/** One JSON value on a line of its own. */
export async function printJson(value: unknown): Promise<void> {
  await writeStdout(`${JSON.stringify(value, null, process.stdout.isTTY ? 2 : 0)}\n`);
}
