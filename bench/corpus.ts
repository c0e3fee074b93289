/**
 * `npm run corpus [-- --dir D] [--json] [--jobs n] [--view decoded]`: scans every file of a corpus through the product's own path and
 * compares rows, nulls and checksums per column with the oracle. Scans run in child processes under a watchdog, so
 * that a crash or a hang is seen and put down to its file. Exits with 1 on wrong values, a crash, a hang, memory past
 * the cap, a file accepted that must be rejected, and a file marked ok that does not match in every column (encrypted
 * columns and LZO excepted).
 */
import { type ChildProcess, fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { type CorpusFile, defaultCorpusFolder, MEMORY_BYTES, readCorpus } from './corpus-files.ts';
import type { FileReading } from './corpus-reading.ts';
import { judge, type Outcome, type Verdict } from './corpus-verdict.ts';
import type { FromWorker, ToWorker } from './corpus-worker.ts';
import { formatTable } from './result.ts';

/** Milliseconds without a sign of life after which a scan hangs: the largest column takes a few seconds. */
const SILENCE_MS = 60_000;
/** Files per child process: some hundreds show what stays behind, and one that crashes takes little with it. */
const FILES_PER_CHILD = 300;
/** Bytes: the cap that scans are given, and what the runtime may take beside it. */
const RSS_BYTES_MAX = MEMORY_BYTES + (200 << 20);
const OUTCOMES: readonly Outcome[] = ['matched', 'refused', 'unsupported', 'WRONG', 'crash', 'hang'];

interface Judged extends Verdict {
  readonly file: CorpusFile;
}

/** One child process at a time: reads the files that it is given, and starts another after a crash. */
class Reader {
  #child: ChildProcess | undefined;
  #files = 0;
  readonly #view: boolean;

  constructor(view: boolean) {
    this.#view = view;
  }

  async read(file: CorpusFile): Promise<Verdict> {
    if (this.#files++ % FILES_PER_CHILD === 0) this.close();
    this.#child ??= fork(new URL('./corpus-worker.ts', import.meta.url), {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    const child = this.#child;
    let complaints = '';
    const onStderr = (bytes: Buffer): void => {
      complaints = (complaints + bytes.toString()).slice(-2000);
    };
    child.stderr!.on('data', onStderr);
    let column = 'its footer';
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<Verdict>((resolve) => {
        const failed = (outcome: 'crash' | 'hang', failure: string): void => {
          this.#child = undefined;
          resolve({ outcome, failure, reasons: [], columnsMatched: 0 });
        };
        const watch = (): void => {
          clearTimeout(timer);
          timer = setTimeout(() => {
            child.removeAllListeners('exit').kill('SIGKILL');
            failed('hang', `no sign of life for ${SILENCE_MS} ms in ${column}`);
          }, SILENCE_MS);
        };
        child.once('exit', (code, signal) => {
          failed('crash', `the process ended with ${signal ?? `code ${code}`} in ${column}: ${complaints}`);
        });
        child.on('message', (message: FromWorker) => {
          watch();
          if ('column' in message) column = message.column;
          else resolve(judge(file, message as FileReading, RSS_BYTES_MAX));
        });
        watch();
        child.send({ path: file.path, view: this.#view } satisfies ToWorker);
      });
    } finally {
      clearTimeout(timer);
      child.removeAllListeners('message').removeAllListeners('exit');
      child.stderr!.off('data', onStderr);
    }
  }

  close(): void {
    this.#child?.disconnect();
    this.#child = undefined;
  }
}

async function readAll(files: readonly CorpusFile[], jobs: number, view: boolean): Promise<Judged[]> {
  const judged: Judged[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    const reader = new Reader(view);
    for (let file = files[next++]; file !== undefined; file = files[next++]) {
      judged.push({ ...(await reader.read(file)), file });
      if (process.stderr.isTTY) process.stderr.write(`\r${judged.length} of ${files.length} files`);
    }
    reader.close();
  };
  await Promise.all(Array.from({ length: jobs }, work));
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
  return judged;
}

/** Files by class and outcome. */
function countOutcomes(judged: readonly Judged[]): Record<string, Record<Outcome, number>> {
  const counts: Record<string, Record<Outcome, number>> = {};
  for (const { file, outcome } of judged) {
    counts[file.expect] ??= { matched: 0, refused: 0, unsupported: 0, WRONG: 0, crash: 0, hang: 0 };
    counts[file.expect]![outcome]++;
  }
  return counts;
}

/** Files by the reason for which they are unsupported, the most frequent first. */
function countReasons(judged: readonly Judged[]): Record<string, number> {
  const counts = new Map<string, number>();
  for (const { outcome, reasons } of judged) {
    if (outcome !== 'unsupported') continue;
    for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return Object.fromEntries([...counts].sort((a, b) => b[1] - a[1]));
}

async function run(): Promise<void> {
  const { values } = parseArgs({
    options: {
      dir: { type: 'string' },
      json: { type: 'boolean' },
      jobs: { type: 'string' },
      view: { type: 'string', default: 'raw' },
    },
  });
  if (values.view !== 'raw' && values.view !== 'decoded') throw new Error(`--view ${values.view}: raw or decoded`);
  const folder = values.dir ?? defaultCorpusFolder();
  const files = readCorpus(folder);
  if (files === undefined) {
    const reason = `no inventory.tsv in ${folder}: name a corpus with --dir or QANAT_CORPUS`;
    console.log(values.json ? JSON.stringify({ skipped: reason }) : `corpus: skipped, ${reason}`);
    if (values.dir !== undefined) process.exitCode = 1;
    return;
  }
  const began = performance.now();
  const judged = await readAll(files, Number(values.jobs ?? availableParallelism()), values.view === 'decoded');
  const classes = countOutcomes(judged);
  const unsupported = countReasons(judged);
  const failures = judged.filter(({ failure }) => failure !== undefined);
  const columnsMatched = judged.reduce((total, verdict) => total + verdict.columnsMatched, 0);
  const refusedOk = judged.filter(
    ({ file, outcome, failure }) => file.expect === 'ok' && outcome === 'refused' && failure === undefined,
  );
  if (failures.length > 0) process.exitCode = 1;

  const plain = (verdicts: readonly Judged[]): object[] =>
    verdicts.map(({ file, outcome, failure, reasons }) => ({
      file: file.sha12,
      origin: file.origin,
      expect: file.expect,
      outcome,
      reason: failure ?? reasons.join('; '),
    }));
  if (values.json) {
    const result = { files: files.length, columnsMatched, classes, unsupported, failures: plain(failures) };
    console.log(JSON.stringify({ ...result, refusedOk: plain(refusedOk) }));
    return;
  }
  const rows = Object.entries(classes).map(([expect, counts]) => [
    expect,
    ...OUTCOMES.map((name) => String(counts[name])),
  ]);
  console.log(formatTable([['expect', ...OUTCOMES], ...rows]));
  const seconds = (performance.now() - began) / 1000;
  console.log(`\n${files.length} files, ${columnsMatched} columns equal to the oracle, ${seconds.toFixed(0)} s`);
  console.log('\nunsupported, files by reason:');
  for (const [reason, count] of Object.entries(unsupported)) console.log(`${String(count).padStart(6)}  ${reason}`);
  for (const [title, list] of [
    ['refused though ok', refusedOk],
    ['failures', failures],
  ] as const) {
    console.log(`\n${title}: ${list.length === 0 ? 'none' : list.length}`);
    for (const { file, outcome, failure, reasons } of list) {
      console.log(`  ${file.sha12} ${file.expect} ${outcome} ${file.origin}\n    ${failure ?? reasons.join('; ')}`);
    }
  }
}

await run();
