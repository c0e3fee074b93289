/**
 * The package as its users have it: packed, installed into an empty folder elsewhere, run and imported there. Installing
 * takes what it depends on from npm's cache or the registry; where neither has it, the test says so and is skipped.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Lake, numbersQuery } from './lake.ts';

const ROOT = join(import.meta.dirname, '../..');
const INSTALL_MS = 120_000;
/** npm's codes for a registry that can't be reached, or a cache without what is asked for. */
const UNREACHABLE = /\b(ENOTCACHED|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH)\b/;

/** Packed bytes at most: what grows beyond it has a reason or does not belong in the package. */
const PACKED_BYTES_MAX = 750_000;

const CONSUMER = `
import type { RecordBatch } from 'apache-arrow';
import { FetchError, openSource, Scan, ScanEngine, type ScanOptions, type ScanReport, scan } from 'qanat';

const location: string = process.argv[2] ?? '';
const options: ScanOptions = { columns: ['id', 'name'], limit: 5000 };
let rows = 0;
for await (const batch of scan(location, options)) rows += (batch as RecordBatch).numRows;

const source = await openSource(location);
const engine = new ScanEngine({ decoders: 1, memoryBytes: 64 * 2 ** 20 });
let report: ScanReport;
let code = '';
try {
  const whole = await Scan.open(engine, source, {});
  for await (const batch of whole) if ('numRows' in batch) rows += batch.numRows;
  report = whole.report();
  await openSource(location + '.nothing').then((other) => other.list());
} catch (error) {
  if (!(error instanceof FetchError)) throw error;
  code = error.code;
} finally {
  await engine.close();
  await source.close();
}
console.log(JSON.stringify({ rows, code, accounted: report!.bytes.accounted === report!.bytes.onWire }));

// @ts-expect-error a misspelt option must be noticed
const misspelt: ScanOptions = { colums: ['id'] };
void misspelt;
`;

const COMPILER_OPTIONS = {
  target: 'es2022',
  lib: ['es2024', 'esnext.disposable'],
  module: 'nodenext',
  strict: true,
  types: ['node'],
  outDir: 'out',
};

interface Ended {
  readonly code: number | string | null;
  readonly text: string;
  readonly errors: string;
}

/** The environment without npm's variables, which would lead a nested npm to this checkout, and without ours. */
function outsideEnvironment(): NodeJS.ProcessEnv {
  const foreign = Object.entries(process.env).filter(
    ([name]) => !/^(npm_(lifecycle|package|command|execpath)|npm_config_local_prefix|INIT_CWD|QANAT_|NODE_)/.test(name),
  );
  return Object.fromEntries(foreign);
}

function run(command: string, args: readonly string[], cwd: string): Promise<Ended> {
  return new Promise((resolve) => {
    const options = { cwd, env: outsideEnvironment(), timeout: INSTALL_MS, maxBuffer: 2 ** 26 };
    execFile(command, args, options, (error, text, errors) =>
      resolve({ code: error === null ? 0 : (error.code ?? error.signal ?? null), text, errors }),
    );
  });
}

async function succeed(command: string, args: readonly string[], cwd: string): Promise<string> {
  const { code, text, errors } = await run(command, args, cwd);
  assert.equal(code, 0, `${command} ${args.join(' ')}\n${text}${errors}`);
  return text;
}

interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: ReadonlyArray<{ readonly path: string }>;
}

describe('the package, installed elsewhere', { timeout: 2 * INSTALL_MS }, () => {
  let folder = '';
  let packed: Packed | undefined;
  let missing = '';
  const qanat = (...args: string[]): Promise<Ended> =>
    run(process.execPath, [join(folder, 'node_modules/.bin/qanat'), ...args], folder);

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'qanat-package-'));
    const npm = await run('npm', ['--version'], folder);
    if (npm.code !== 0) {
      missing = 'no npm here';
      return;
    }
    const packing = await succeed('npm', ['pack', '--json', '--pack-destination', folder], ROOT);
    packed = (JSON.parse(packing.slice(packing.indexOf('[\n'))) as Packed[])[0]!;
    await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
    const tarball = join(folder, packed.filename);
    const install = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--omit=dev', tarball];
    const installed = await run('npm', install, folder);
    if (installed.code === 0) return;
    const unreachable = UNREACHABLE.exec(installed.errors)?.[0];
    assert.ok(unreachable !== undefined, installed.errors);
    missing = `npm can not install here: ${unreachable}`;
  });

  after(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  test('holds what runs and nothing else', (context) => {
    if (packed === undefined) return context.skip(missing);
    const paths = packed.files.map(({ path }) => path);
    context.diagnostic(`${packed.size} bytes packed, ${packed.unpackedSize} unpacked, ${paths.length} files`);
    const expected =
      /^(LICENSE|README\.md|package\.json|daemon\/bin\/qanat\.mjs|dist\/.+\.(js|d\.ts|wasm|parquet|json|1))$/;
    assert.deepEqual(
      paths.filter((path) => !expected.test(path) || /\/(tests|bench)\/|\.test\./.test(path)),
      [],
    );
    assert.ok(paths.includes('dist/build/kernels.wasm'));
    const { man } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { man: string[] };
    const manuals = paths.filter((path) => path.endsWith('.1')).map((path) => `./${path}`);
    assert.deepEqual(man.toSorted(), manuals.toSorted(), 'package.json names the manual of each command');
    assert.ok(packed.size < PACKED_BYTES_MAX, `${packed.size} bytes`);
  });

  test('the command says its version, and why it stops', async (context) => {
    if (missing !== '') return context.skip(missing);
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    assert.deepEqual(await qanat('--version'), { code: 0, text: `${version}\n`, errors: '' });
    assert.ok(!existsSync(join(folder, 'node_modules/node')), 'the package brings no Node of its own');
    const failed = await qanat('scan', './nothing.parquet');
    assert.equal(failed.code, 1);
    assert.match(failed.errors, /^qanat scan: fetch NOT_FOUND: .*\n$/);
  });

  test('a server process, decoder threads and kernels are found: the demo checks itself', async (context) => {
    if (missing !== '') return context.skip(missing);
    const { code, text, errors } = await qanat('demo', '--rows', '20000', '--json');
    assert.equal(errors, '');
    assert.equal(code, 0);
    assert.equal(JSON.parse(text).equal, true);
  });

  test('a typed program imports it', async (context) => {
    if (missing !== '') return context.skip(missing);
    await using lake = await Lake.create();
    const file = await lake.write('numbers.parquet', numbersQuery(20_000));
    await writeFile(join(folder, 'consumer.ts'), CONSUMER);
    await writeFile(
      join(folder, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: COMPILER_OPTIONS, files: ['consumer.ts'] }),
    );
    // with all declarations checked, ours and those they lead to
    await succeed(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '--project', '.'], folder);
    const text = await succeed(process.execPath, ['out/consumer.js', file], folder);
    assert.deepEqual(JSON.parse(text), { rows: 25_000, code: 'NOT_FOUND', accounted: true });
  });

  test('an older Node is told so in one line', async (context) => {
    if (missing !== '') return context.skip(missing);
    const system = ['/usr/bin/node', '/usr/local/bin/node'].find((path) => existsSync(path));
    const version = system === undefined ? '' : await succeed(system, ['--version'], folder);
    if (system === undefined || !/^v(1[2-9]|2[0-3])\./.test(version)) return context.skip('no older Node here');
    const told = await run(system, [join(folder, 'node_modules/.bin/qanat'), '--version'], folder);
    assert.equal(told.code, 2);
    assert.equal(told.text, '');
    assert.equal(
      told.errors,
      `qanat: needs Node.js 24.3 or newer, this is ${version.trim().slice(1)}: https://nodejs.org\n`,
    );
  });
});
