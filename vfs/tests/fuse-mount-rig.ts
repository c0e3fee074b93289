/**
 * Real mounts for tests: a server process per mount, told what to do over IPC, and always cleared away, whatever became
 * of it. Whoever reads the mount is another process.
 */
import { type ChildProcess, execFile, fork } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fuserUnmount } from '../fuse/fusermount.ts';
import type { KernelOffer } from '../fuse/init.ts';
import { loadLibc } from '../fuse/libc.ts';
import { mountAt } from '../fuse/mount-table.ts';
import type { ServerCommand, ServerOptions } from './fuse-server.ts';

/** Milliseconds after which a step of a test counts as hanging. */
const STEP_MS = 60_000;
const MNT_DETACH = 2;

export interface Figures {
  readonly pending: number;
  readonly interrupts: number;
  readonly handles: number;
  readonly waiting: number;
  readonly opens: Readonly<Record<string, number>>;
  readonly requests: Readonly<Record<string, number>>;
  readonly problems: readonly string[];
}

export interface User {
  readonly uid: number;
  readonly gid: number;
}

/** Whoever waits for an answer of the server, by its number. */
type Waiting = Map<number, (reply: { value?: unknown; error?: string }) => void>;

export class MountRig {
  readonly folder: string;
  readonly child: ChildProcess;
  readonly ready: { readonly cleared: boolean; readonly offer: KernelOffer; readonly readAheadSet: boolean };
  readonly #waiting: Waiting;
  #id = 0;

  constructor(folder: string, child: ChildProcess, ready: MountRig['ready'], waiting: Waiting) {
    this.folder = folder;
    this.child = child;
    this.ready = ready;
    this.#waiting = waiting;
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  async call<T>(command: ServerCommand): Promise<T> {
    const id = ++this.#id;
    const { promise, resolve } = Promise.withResolvers<{ value?: unknown; error?: string }>();
    this.#waiting.set(id, resolve);
    this.child.send({ id, command });
    const { value, error } = await inTime(promise, `the server's answer to ${command.op}`);
    if (error !== undefined) throw new Error(error);
    return value as T;
  }

  figures(): Promise<Figures> {
    return this.call<Figures>({ op: 'figures' });
  }

  /** Waits until the server's figures are as they should be. */
  async until(what: string, holds: (figures: Figures) => boolean): Promise<Figures> {
    for (const since = performance.now(); ; await sleep(10)) {
      const figures = await this.figures();
      if (holds(figures)) return figures;
      if (performance.now() - since > STEP_MS) throw new Error(`not so after ${STEP_MS} ms: ${what}`);
    }
  }

  async exited(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.child.once('exit', () => resolve());
    await inTime(promise, 'the end of the server');
  }

  /** Ends the process, which leaves the mount dead. */
  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.exited();
  }

  /** Whatever state it is in: no process, no mount, no folder. */
  async clear(): Promise<void> {
    this.child.kill('SIGKILL');
    await clearMount(this.folder);
    await this.exited();
    rmSync(dirname(this.folder), { recursive: true, force: true });
  }
}

async function clearMount(folder: string): Promise<void> {
  for (let tries = 0; mountAt(folder) !== undefined && tries < 5; tries++) {
    if (process.getuid!() === 0) await (await loadLibc()).umount(folder, MNT_DETACH);
    else await fuserUnmount(folder, true);
  }
}

export function inTime<T>(promise: Promise<T>, what: string): Promise<T> {
  const late = new AbortController();
  const timer = sleep(STEP_MS, undefined, { signal: late.signal }).then(() => {
    throw new Error(`not there after ${STEP_MS} ms: ${what}`);
  });
  timer.catch(() => undefined);
  return Promise.race([promise, timer]).finally(() => late.abort());
}

/** A folder for a mount, which every user may reach. */
export function newFolder(user?: User): string {
  const base = mkdtempSync(join(tmpdir(), 'qanat-fuse-'));
  chmodSync(base, 0o777);
  // of the mount's own, so that what is tested can be told from what is there
  const folder = join(base, 'mnt');
  mkdirSync(folder);
  if (user !== undefined) chownSync(folder, user.uid, user.gid);
  return folder;
}

export class StartError extends Error {
  readonly code: string;

  constructor(code: string, text: string) {
    super(text);
    this.code = code;
  }
}

/** Starts a server and waits until it is mounted. Throws StartError with a MountError's code. */
export async function startMount(
  options: ServerOptions,
  as: { user?: User; env?: NodeJS.ProcessEnv } = {},
): Promise<MountRig> {
  const waiting: Waiting = new Map();
  const { promise, resolve, reject } = Promise.withResolvers<MountRig['ready']>();
  const child = fork(new URL('./fuse-server.ts', import.meta.url), [JSON.stringify(options)], {
    ...as.user,
    env: { ...process.env, ...as.env },
    serialization: 'advanced',
  });
  child.on('message', (message: Record<string, never>) => {
    const { ready, failed, id } = message as Record<string, unknown>;
    if (ready !== undefined) resolve(ready as MountRig['ready']);
    else if (failed !== undefined) {
      const { code, text } = failed as { code: string; text: string };
      reject(new StartError(code, text));
    } else if (typeof id === 'number') {
      waiting.get(id)?.(message);
      waiting.delete(id);
    }
  });
  child.once('exit', (code, signal) => {
    reject(new StartError('EXIT', `the server ended with ${code ?? signal}`));
    for (const answer of waiting.values()) answer({ error: 'the server ended' });
  });
  try {
    return new MountRig(options.folder, child, await inTime(promise, 'the mount'), waiting);
  } catch (error) {
    child.kill('SIGKILL');
    await clearMount(options.folder);
    throw error;
  }
}

/** Why nothing can be mounted here; false where it can. */
export async function whyNoMount(): Promise<string | false> {
  if (process.platform !== 'linux') return 'only Linux can mount';
  if (!existsSync('/dev/fuse')) return '/dev/fuse is not there';
  const folder = newFolder();
  try {
    const rig = await startMount({ folder, files: [], generation: 'probe' });
    await rig.clear();
    return false;
  } catch (error) {
    if (!(error instanceof StartError) || !['NO_DEVICE', 'NOT_PERMITTED', 'NO_FUSERMOUNT'].includes(error.code))
      throw error;
    return error.message.split('\n')[0]!;
  }
}

export interface Ran {
  readonly status: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program that may touch the mount; one that hangs is killed and told so. */
export async function run(program: string, args: readonly string[], user?: User): Promise<Ran> {
  const { promise, resolve } = Promise.withResolvers<Ran>();
  const env = { ...process.env, LC_ALL: 'C' };
  const options = { timeout: STEP_MS, killSignal: 'SIGKILL', maxBuffer: 1 << 26, env, ...user } as const;
  execFile(program, args, options, (error, stdout, stderr) => {
    const status = error === null ? 0 : (error.code ?? error.signal ?? 'failed');
    resolve({ status, stdout, stderr });
  });
  return inTime(promise, `${program} ${args.join(' ')}`);
}

/** Runs JavaScript in a process of its own; what it prints. */
export async function runScript(code: string, args: readonly string[], user?: User): Promise<string> {
  const { status, stdout, stderr } = await run(process.execPath, ['-e', code, ...args], user);
  if (status !== 0) throw new Error(`${status}: ${stderr}`);
  return stdout;
}

/** A user made for the test, and what undoes it; or why there is none. */
export async function makeUser(): Promise<{ user: User; remove: () => Promise<void> } | string> {
  if (process.getuid!() !== 0) return 'only root can make a user';
  const name = `qanat-test-${process.pid}`;
  const made = await run('useradd', ['--system', '--no-create-home', '--shell', '/bin/false', name]);
  if (made.status !== 0) return `useradd: ${made.status} ${made.stderr.trim()}`;
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((one) => one.startsWith(`${name}:`))!;
  const [, , uid, gid] = line.split(':');
  const user = { uid: Number(uid), gid: Number(gid) };
  // distributions make it 0666; a kernel alone makes it 0600
  const { mode } = statSync('/dev/fuse');
  chmodSync('/dev/fuse', 0o666);
  const remove = async () => {
    chmodSync('/dev/fuse', mode & 0o777);
    await run('userdel', [name]);
  };
  const readable = await run(process.execPath, ['-e', 'require(process.argv[1])', import.meta.filename], user);
  const missing = /EACCES|permission denied|Cannot find module/i.test(readable.stderr) || readable.status === 'EACCES';
  if (missing) {
    await remove();
    return 'the checkout can be read by root alone';
  }
  return { user, remove };
}
