/**
 * `qanat unmount`: takes a mount of ours away, one that lives or one that a killed process left behind. One that is in
 * use is waited for, and then left as it is, with the names of those who use it, unless it may be taken away from them.
 */
import { probeMount, unmountFolder } from '../../vfs/fuse/index.ts';
import { MountError } from '../../vfs/index.ts';
import { usersOf } from '../mount/mount-users.ts';
import { mountPath } from '../mount/own-mount.ts';
import { type CommandContext, printJson, tellDone } from './command.ts';
import { DRAIN_MS_DEFAULT } from './limits.ts';

export async function unmount({ operands, options }: CommandContext): Promise<void> {
  const folder = operands[0]!;
  const { lazy = false, drainTimeout = DRAIN_MS_DEFAULT } = options;
  const path = await mountPath(folder);
  // nobody has anything of what is dead
  const lives = path === undefined || (await probeMount(path)) === 'alive';
  const isKept = lives && !lazy;
  const how = await take(folder, isKept, isKept ? drainTimeout : 0);
  if (options.json) await printJson({ event: 'unmounted', mount: path ?? folder, how });
  else tellDone(how === 'detached' ? `${folder} is detached` : `${folder} is unmounted`, options);
}

async function take(folder: string, keepBusy: boolean, graceMs: number): Promise<'unmounted' | 'detached'> {
  try {
    return await unmountFolder(folder, { graceMs, keepBusy });
  } catch (error) {
    if (!(error instanceof MountError) || error.code !== 'BUSY') throw error;
    const users = usersOf((await mountPath(folder)) ?? folder);
    const whom = users.length === 0 ? '' : ` by ${users.join(', ')}`;
    throw new MountError('BUSY', `${folder} is in use${whom}: end that, or take it away from under it with --lazy`, {
      cause: error,
    });
  }
}
