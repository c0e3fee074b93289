/**
 * `npm run test:verbs [-- --bench] [-- --minutes n] [-- file...]`: the tests of real RDMA (`*.vm-test.ts`, or those that
 * are named) in a virtual machine with two Soft-RoCE devices, made by setup.sh, from a copy of this checkout. QEMU
 * interprets the machine, without KVM, so that it runs anywhere; it ends with this process, whatever that ends of. The
 * exit code is that of the tests. Where no such machine can be made it says so and ends with 0, or with 1 where
 * QANAT_VERBS_VM is "required". With `--bench` it measures instead of testing.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { defaultCorpusFolder } from '../../../bench/corpus-files.ts';
import { buildKernels } from '../../../decode/kernels/build.ts';

/** What setup.sh ends with where there can be no machine. */
const CANNOT = 77;
/** Minutes: the whole takes a few where two cores are idle, and much more where others want them. */
const MINUTES = 15;
/** Bytes: two Node.js processes with pools and pinned regions. */
const GUEST_MEMORY = '3G';
const BENCH = 'fetcher/bench/verbs-reads.ts';

/** What strips types takes ten seconds of a process there, so they are stripped here, and Node.js is told. */
const STRIPPED_ALREADY = `
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
registerHooks({
  load: (url, context, next) =>
    url.startsWith('file:///repo/') && url.endsWith('.ts')
      ? { format: 'module', source: readFileSync(new URL(url)), shortCircuit: true }
      : next(url, context),
});
`;

const root = resolve(import.meta.dirname, '../../..');
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { bench: { type: 'boolean', default: false }, minutes: { type: 'string', default: String(MINUTES) } },
});
const minutes = Number(values.minutes);
if (!(minutes > 0)) throw new Error(`--minutes ${values.minutes} is no time`);

process.exitCode = await main();

async function main(): Promise<number> {
  const parts = makeParts();
  if (parts === undefined) return process.env.QANAT_VERBS_VM === 'required' ? 1 : 0;
  const scratch = mkdtempSync(join(tmpdir(), 'qanat-verbs-run-'));
  process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));
  const disk = makeDisk(parts, scratch);
  return boot(parts, disk);
}

/** The folder of the machine's parts; says why there is none. */
function makeParts(): string | undefined {
  const cache = join(tmpdir(), `qanat-verbs-${process.getuid?.() ?? 0}`);
  const made = spawnSync(join(import.meta.dirname, 'setup.sh'), [cache], { stdio: ['ignore', 'pipe', 'pipe'] });
  const said = String(made.stderr ?? made.error).trim();
  if (made.status === CANNOT) {
    const reason = said.split('\n').at(-1);
    const line = '#'.repeat(100);
    console.log(`${line}\n# SKIPPED: nothing of RDMA was tested.\n# ${reason}\n${line}`);
    return undefined;
  }
  if (said !== '') console.log(said);
  if (made.status !== 0) throw new Error('the parts of the virtual machine can not be made');
  return String(made.stdout).trim();
}

/** A disk with the checkout as it is, what git ignores left out; with the kernels, the corpus and what is to be run. */
function makeDisk(parts: string, scratch: string): string {
  const repo = join(scratch, 'repo');
  buildKernels();
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root });
  const files = listed
    .toString()
    .split('\0')
    .filter((path) => path !== '' && existsSync(join(root, path)));
  for (const path of [...files, 'build/kernels.wasm']) {
    mkdirSync(dirname(join(repo, path)), { recursive: true });
    const isSource = path.endsWith('.ts') && !path.endsWith('.d.ts') && !path.includes('/assembly/');
    if (isSource) writeFileSync(join(repo, path), stripTypeScriptTypes(readFileSync(join(root, path), 'utf8')));
    else cpSync(join(root, path), join(repo, path), { preserveTimestamps: true });
  }
  writeFileSync(join(repo, '.vm-stripped.mjs'), STRIPPED_ALREADY);
  const corpus = defaultCorpusFolder();
  const hasCorpus = existsSync(join(corpus, 'inventory.tsv'));
  if (hasCorpus) cpSync(corpus, join(repo, '.vm-corpus'), { recursive: true });
  else console.log('there is no corpus: QANAT_CORPUS names none');
  symlinkSync('/opt/node_modules', join(repo, 'node_modules'));
  writeFileSync(join(repo, '.vm-command'), command(files, hasCorpus));
  const disk = join(scratch, 'repo.img');
  // room for what the tests write beside it
  execFileSync(join(parts, 'mke2fs'), ['-q', '-t', 'ext4', '-m', '0', '-d', repo, disk, '1g'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  rmSync(repo, { recursive: true });
  return disk;
}

function command(files: readonly string[], hasCorpus: boolean): string {
  const named = positionals.map((path) => relative(root, resolve(path)));
  const tests = named.length > 0 ? named : files.filter((path) => path.endsWith('.vm-test.ts')).sort();
  const quoted = tests.map((path) => `'${path.replaceAll("'", `'\\''`)}'`).join(' ');
  const seed = process.env.QANAT_SEED;
  return [
    'export NODE_OPTIONS="--import /repo/.vm-stripped.mjs" NODE_COMPILE_CACHE=/tmp/compile-cache',
    ...(hasCorpus ? ['export QANAT_CORPUS=/repo/.vm-corpus'] : []),
    ...(seed !== undefined && /^\d+$/.test(seed) ? [`export QANAT_SEED=${seed}`] : []),
    values.bench
      ? `exec node ${BENCH}`
      : `exec node --test --test-concurrency=1 --test-reporter=spec --test-timeout=240000 ${quoted}`,
    '',
  ].join('\n');
}

/** Runs the machine to its end and tells all that it says; the exit code of its command, 1 where there is none. */
async function boot(parts: string, disk: string): Promise<number> {
  const drive = (file: string, mode: string): string[] => ['-drive', `file=${file},format=raw,if=virtio,${mode}`];
  const machine = [
    ...['-accel', 'tcg,thread=multi', '-M', 'pc', '-cpu', 'max', '-smp', '2', '-m', GUEST_MEMORY],
    ...['-nodefaults', '-no-user-config', '-no-reboot', '-display', 'none', '-serial', 'stdio'],
    ...drive(join(parts, 'system.img'), 'readonly=on'),
    ...drive(disk, 'cache=unsafe'),
    ...['-kernel', join(parts, 'vmlinuz'), '-initrd', join(parts, 'initramfs')],
    // the timer's self-test fails now and then where other processes take the processor meanwhile
    ...['-append', 'console=ttyS0 panic=-1 quiet no_timer_check'],
  ];
  // each ends with its parent, also one that is killed; `timeout` is for the case that this process hangs
  const withParent = ['setpriv', '--pdeathsig', 'KILL'];
  const limit = ['timeout', '-s', 'KILL', String(Math.ceil(minutes * 60) + 30)];
  const [first, ...rest] = [...withParent, ...limit, ...withParent, join(parts, 'qemu'), ...machine];
  const child = spawn(first!, rest, { stdio: ['ignore', 'pipe', 'inherit'], detached: true });
  const end = (): void => endGroup(child);
  process.on('exit', end);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));
  const timer = setTimeout(() => {
    console.log(`the virtual machine was ended after ${minutes} minutes`);
    end();
  }, minutes * 60_000);
  let code = 1;
  const lines = createInterface({ input: child.stdout! });
  lines.on('line', (line) => {
    const said = line.replace(/\r/g, '');
    console.log(said);
    const ended = /^the command ended with (\d+)$/.exec(said);
    if (ended !== null) code = Number(ended[1]);
  });
  await Promise.all([once(child, 'exit'), once(lines, 'close')]);
  clearTimeout(timer);
  return code;
}

function endGroup({ pid, exitCode, signalCode }: ChildProcess): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // it ended meanwhile
  }
}
