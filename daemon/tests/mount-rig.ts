/**
 * Real mounts for tests, of the real command. This process never touches one: programs that read are children with a
 * time limit, and whatever happens, everything is unmounted and ended when the rig is disposed of.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { QANAT } from './command-run.ts';

const CAP_SYS_ADMIN = 21n;
/** Bounded: far more than anything here takes on a loaded machine. */
const PROGRAM_MS = 180_000;

/** Why this process can't mount as root does; false when it can. */
export function whyNoMounts(): string | false {
  if (process.platform !== 'linux') return 'only Linux mounts';
  if (process.geteuid?.() !== 0) return 'needs root, for mount(2)';
  if (!existsSync('/dev/fuse')) return 'there is no /dev/fuse here';
  const capabilities = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
  return (BigInt(`0x${capabilities}`) >> CAP_SYS_ADMIN) & 1n ? false : 'mount(2) is not permitted here';
}

export interface Ended {
  readonly code: number | null;
  readonly text: string;
  readonly errors: string;
}

export interface Mount {
  readonly folder: string;
  readonly child: ChildProcess;
  readonly ready: Readonly<Record<string, unknown>>;
  errors(): string;
  /** Sends a signal and waits for the end. */
  end(signal: NodeJS.Signals): Promise<Ended>;
  /** Waits for the end. */
  ended(): Promise<Ended>;
}

/** A program that reads a mount and is talked to line by line. */
export interface Reader {
  readonly child: ChildProcess;
  /** Sends a command and gives its answer. */
  ask(command: string): Promise<string>;
}

/** Opens files and reads ranges as it is told to; answers with a digest of the bytes or the code of the error. */
const READER = `
const { closeSync, openSync, readSync } = require('node:fs');
const { createHash } = require('node:crypto');
const open = new Map();
// libuv has no name for ESTALE
const nameOf = ({ errno, code }) => Object.entries(require('node:os').constants.errno).find(([, value]) => value === -errno)?.[0] ?? code;
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const [verb, name, offset, length] = line.split(' ');
  try {
    if (verb === 'open') { open.set(name, openSync(name)); console.log('ok'); }
    else if (verb === 'close') { closeSync(open.get(name)); console.log('ok'); }
    else {
      const bytes = Buffer.alloc(Number(length));
      const read = readSync(open.get(name), bytes, 0, bytes.length, Number(offset));
      console.log(createHash('sha256').update(bytes.subarray(0, read)).digest('hex'));
    }
  } catch (error) { console.log(nameOf(error)); }
});`;

export class MountRig {
  readonly folder = mkdtempSync(join(tmpdir(), 'qanat-mount-'));
  readonly #children = new Set<ChildProcess>();
  readonly #folders = new Set<string>();

  path(...names: string[]): string {
    return join(this.folder, ...names);
  }

  /** An empty folder of the rig, unmounted at the end. */
  mountPoint(name: string): string {
    const folder = this.path(name);
    // one that was there may be dead now
    if (!this.#folders.has(folder)) mkdirSync(folder, { recursive: true });
    this.#folders.add(folder);
    return folder;
  }

  write(name: string, bytes: Uint8Array | string): string {
    const path = this.path(name);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, bytes);
    return path;
  }

  spawn(program: string, args: readonly string[], options: { readonly cwd?: string } = {}): ChildProcess {
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('QANAT_')));
    const child = spawn(program, args, { ...options, env, stdio: ['pipe', 'pipe', 'pipe'] });
    this.#children.add(child);
    child.once('exit', () => this.#children.delete(child));
    return child;
  }

  /** Runs a program to its end; one that takes too long is killed and has no code. */
  async run(program: string, args: readonly string[], options: { readonly cwd?: string } = {}): Promise<Ended> {
    return endOf(this.spawn(program, args, options));
  }

  qanat(args: readonly string[], options: { readonly cwd?: string } = {}): Promise<Ended> {
    return this.run(process.execPath, [QANAT, ...args], options);
  }

  /** Starts `qanat mount` in the foreground and waits until it is ready. */
  async mount(url: string, name: string, ...args: string[]): Promise<Mount> {
    const folder = this.mountPoint(name);
    const child = this.spawn(process.execPath, [QANAT, 'mount', url, folder, ...args]);
    let errors = '';
    child.stderr!.on('data', (data) => {
      errors += data;
    });
    const ended = endOf(child);
    const lines = createInterface({ input: child.stdout! });
    const first = await Promise.race([
      once(lines, 'line').then(([line]) => line as string),
      ended.then(({ code }) => Promise.reject(new Error(`qanat mount ended with ${code}: ${errors}`))),
    ]);
    return {
      folder,
      child,
      ready: JSON.parse(first),
      errors: () => errors,
      ended: () => ended,
      end(signal) {
        child.kill(signal);
        return ended;
      },
    };
  }

  reader(): Reader {
    const child = this.spawn(process.execPath, ['-e', READER]);
    const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
    return {
      child,
      async ask(command) {
        child.stdin!.write(`${command}\n`);
        const { value, done } = await within(lines.next(), `an answer to ${command}`);
        return done ? 'ended' : value;
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const folder of this.#folders) spawnSync('umount', ['-l', folder], { stdio: 'ignore', timeout: 5000 });
    const ended = [...this.#children].map((child) => once(child, 'exit'));
    for (const child of this.#children) child.kill('SIGKILL');
    await Promise.race([Promise.all(ended), sleep(5000, undefined, { ref: false })]);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

async function endOf(child: ChildProcess): Promise<Ended> {
  let text = '';
  let errors = '';
  child.stdout!.on('data', (data) => {
    text += data;
  });
  child.stderr!.on('data', (data) => {
    errors += data;
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), PROGRAM_MS);
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(timer);
  return { code, text, errors };
}

/** Fails when something takes as long as only what hangs does. */
export async function within<T>(promise: Promise<T>, what: string): Promise<T> {
  const late = new AbortController();
  const timeout = sleep(PROGRAM_MS, undefined, { signal: late.signal }).then(
    () => Promise.reject(new Error(`${what} did not come`)),
    () => promise,
  );
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    late.abort();
  }
}

/** Asks again until it is so. */
export async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const asking = (async () => {
    while (!(await holds())) await sleep(50);
  })();
  await within(asking, what);
}
