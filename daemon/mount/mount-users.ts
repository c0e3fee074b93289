/**
 * Who has files of a mount open, or works in it: for people who want to unmount it. From /proc, which says where a link
 * leads without asking the mount. Processes of others stay unknown to a user who is not root.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { USERS_SHOWN_MAX } from './limits.ts';

/** `cat (123)`, a few of them. */
export function usersOf(folder: string): string[] {
  const users: string[] = [];
  for (const pid of namesIn('/proc')) {
    if (!/^\d+$/.test(pid) || pid === String(process.pid) || !uses(pid, folder)) continue;
    users.push(`${nameOf(pid)} (${pid})`);
    if (users.length === USERS_SHOWN_MAX) break;
  }
  return users;
}

function uses(pid: string, folder: string): boolean {
  const links = [
    `/proc/${pid}/cwd`,
    `/proc/${pid}/root`,
    ...namesIn(`/proc/${pid}/fd`).map((fd) => `/proc/${pid}/fd/${fd}`),
  ];
  return links.some((link) => {
    const target = targetOf(link);
    return target === folder || target.startsWith(`${folder}/`);
  });
}

function targetOf(link: string): string {
  try {
    return readlinkSync(link);
  } catch {
    return '';
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function nameOf(pid: string): string {
  try {
    // the name of the thread says less: Node.js calls its first one MainThread
    const [program = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    return basename(program) || readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return 'process';
  }
}
