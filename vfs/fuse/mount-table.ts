/**
 * What is mounted where, from /proc/self/mountinfo, and whether it lives. A mount is never touched by this process to
 * find out: the process may be the one that serves it, and a touch of one that hangs can't be taken back. A child
 * asks, and is left alone when it does not come back.
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { PROBE_MS } from './limits.ts';

export interface MountEntry {
  readonly folder: string;
  /** Major and minor number of its device. */
  readonly device: string;
  /** fuse.qanat for ours. */
  readonly type: string;
  readonly source: string;
}

/** The type that our mounts have. */
export const MOUNT_TYPE = 'fuse.qanat';

/** Parses the text of /proc/PID/mountinfo (proc(5)); lines that are not such are left out. */
export function parseMountInfo(text: string): MountEntry[] {
  const entries: MountEntry[] = [];
  for (const line of text.split('\n')) {
    const [before, after] = line.split(' - ', 2);
    const fields = before?.split(' ') ?? [];
    const [type, source] = after?.split(' ') ?? [];
    if (fields.length < 6 || type === undefined) continue;
    const folder = unescapeOctal(fields[4]!);
    entries.push({ folder, device: fields[2]!, type, source: unescapeOctal(source ?? '') });
  }
  return entries;
}

/** Spaces, tabs, newlines and backslashes are written as three octal digits. The rest is UTF-8. */
function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}

/** The mount on top at a folder, whose path is real and absolute. */
export function mountAt(folder: string): MountEntry | undefined {
  return parseMountInfo(readFileSync('/proc/self/mountinfo', 'utf8')).findLast((entry) => entry.folder === folder);
}

/**
 * - alive: it answers      - dead: its server is gone (ENOTCONN)
 * - silent: no answer within the time      - other: an error that says nothing of that
 */
export type MountHealth = 'alive' | 'dead' | 'silent' | 'other';

const PROBE = `require('node:fs').statfs(process.argv[1], (error) => process.stdout.write(error ? error.code : 'ok'))`;

/** Asks the mount for its figures, in a child process. */
export async function probeMount(folder: string, timeoutMs = PROBE_MS): Promise<MountHealth> {
  const child = spawn(process.execPath, ['-e', PROBE, folder], { stdio: ['ignore', 'pipe', 'ignore'] });
  const { promise, resolve } = Promise.withResolvers<MountHealth>();
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString('latin1');
  });
  const timer = setTimeout(() => {
    child.kill('SIGKILL');
    // it may not die of that while the mount hangs
    child.unref();
    child.stdout.destroy();
    resolve('silent');
  }, timeoutMs);
  child.once('error', () => resolve('other'));
  child.once('close', () => resolve(healthOf(said)));
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
  }
}

function healthOf(said: string): MountHealth {
  if (said === 'ok') return 'alive';
  return said === 'ENOTCONN' || said === 'ECONNABORTED' ? 'dead' : 'other';
}

/** Sets how far the kernel reads ahead on a mount; false where it does not let us (only root may). */
export async function setReadAhead(device: string, bytes: number): Promise<boolean> {
  if (!/^\d+:\d+$/.test(device)) return false;
  try {
    await writeFile(`/sys/class/bdi/${device}/read_ahead_kb`, String(Math.floor(bytes / 1024)));
    return true;
  } catch {
    return false;
  }
}
