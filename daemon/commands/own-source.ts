/** Keeps an output from replacing a file that it is made from, by whatever name either is called. */
import { stat } from 'node:fs/promises';
import type { Source } from '../../vfs/index.ts';
import { CommandError } from '../errors.ts';

/** Throws CommandError USAGE when the local file `target` is one of the source's files: same device, same inode. */
export async function refuseOwnSource(source: Source, target: string | undefined): Promise<void> {
  if (source.location.scheme !== 'file' || target === undefined || target === '-') return;
  const to = await stat(target, { bigint: true }).catch(() => undefined);
  if (!to?.isFile()) return;
  for (const { path } of await source.list()) {
    const stored = source.storedAt(path);
    const from = stored === undefined ? undefined : await stat(stored, { bigint: true }).catch(() => undefined);
    if (from?.dev !== to.dev || from.ino !== to.ino) continue;
    const shown = source.shown(path);
    const what = shown === target ? `${shown} is read` : `${shown}, which is read, and ${target} are the same file`;
    throw new CommandError('USAGE', `${what}: name another file to write to`);
  }
}
