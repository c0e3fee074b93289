/**
 * What `npm pack` puts into the package: `node package-build.ts` compiles the command, the library and the decoder
 * threads to JavaScript in `dist/`, laid out as the sources are, with the kernels and the file that mounts warm up with, with declarations for whoever imports
 * the library, and with manual pages. Node refuses to strip types below node_modules, so that the sources as they are
 * would not run there. In a checkout the command runs from its sources; only `import 'qanat'` takes `dist/`.
 *
 * The folder is replaced when all of it is there, so that a build that fails leaves the old one.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, normalize, relative } from 'node:path';
import { COMMANDS, type CommandName } from './daemon/command-table.ts';
import { commandPage, programPage } from './daemon/help/page.ts';
import { pageRoff } from './daemon/help/roff.ts';
import { WARM_UP_FILE } from './daemon/mount/warm-up-file.ts';
import { buildKernels } from './decode/kernels/build.ts';
import { KERNELS_WASM } from './decode/kernels/layout.ts';
import packageJson from './package.json' with { type: 'json' };

const ROOT = import.meta.dirname;
const LIBRARY = 'daemon/index.d.ts';
const WEBASSEMBLY = 'webassembly.d.ts';

/** Compiles into `output`. Throws when the compiler has something to say. */
function buildPackage(output: string): void {
  buildKernels();
  const draft = `${output}.${process.pid}`;
  try {
    compile(draft);
    keepDeclarationsOf(draft, LIBRARY);
    for (const file of [KERNELS_WASM, WARM_UP_FILE]) {
      const copy = join(draft, relative(ROOT, file));
      mkdirSync(dirname(copy), { recursive: true });
      copyFileSync(file, copy);
    }
    writeManuals(join(draft, 'man'));
    // the compiler puts a whole copy there because the command imports its version
    writeFileSync(join(draft, 'package.json'), `${JSON.stringify({ version: packageJson.version, type: 'module' })}\n`);
    rmSync(output, { recursive: true, force: true });
    renameSync(draft, output);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** Pages for man, which npm links where man looks when the package is installed for all. */
function writeManuals(folder: string): void {
  mkdirSync(folder);
  for (const page of [programPage(), ...(Object.keys(COMMANDS) as CommandName[]).map(commandPage)]) {
    writeFileSync(join(folder, `${page.name.replaceAll(' ', '-')}.1`), pageRoff(page, packageJson.version));
  }
}

function compile(output: string): void {
  const compiler = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc');
  const args = [compiler, '--project', join(ROOT, 'tsconfig.package.json'), '--outDir', output];
  const { status, stdout, stderr, error } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`tsc ended with ${status}\n${stdout}${stderr}`);
}

/**
 * Removes the declarations that `library` does not lead to. In those that stay, imports get the names of the compiled
 * files, which the compiler does in JavaScript only. Types of WebAssembly, which only browsers' type libraries have,
 * are declared for those who have none; empty, so that they merge with real ones.
 */
function keepDeclarationsOf(folder: string, library: string): void {
  const kept = new Set([library]);
  const webAssemblyTypes = new Set<string>();
  for (const path of kept) {
    const text = readFileSync(join(folder, path), 'utf8');
    const renamed = text.replace(/((?:from|import\() ?')(\.[^']*)\.ts'/g, (_, before: string, specifier: string) => {
      kept.add(normalize(join(dirname(path), `${specifier}.d.ts`)));
      return `${before}${specifier}.js'`;
    });
    for (const [, name] of renamed.matchAll(/\bWebAssembly\.(\w+)/g)) webAssemblyTypes.add(name!);
    writeFileSync(join(folder, path), renamed);
  }
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (path.endsWith('.d.ts') && !kept.has(path)) rmSync(join(folder, path));
  }
  if (webAssemblyTypes.size === 0) return;
  const interfaces = [...webAssemblyTypes].map((name) => `  interface ${name} {}\n`);
  writeFileSync(join(folder, WEBASSEMBLY), `declare namespace WebAssembly {\n${interfaces.join('')}}\n`);
  const path = join(folder, library);
  const reference = `/// <reference path="${relative(dirname(library), WEBASSEMBLY)}" />\n`;
  writeFileSync(path, reference + readFileSync(path, 'utf8'));
}

try {
  buildPackage(join(ROOT, 'dist'));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
