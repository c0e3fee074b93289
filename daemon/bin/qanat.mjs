#!/usr/bin/env node
/**
 * The `qanat` command: of a checkout, where it runs from the TypeScript sources, and of an installed package, where it
 * runs from what was compiled. Plain JavaScript that Nodes since 12.20 parse, so that those before 24.3 can say what is
 * missing; in a checkout the Node that `npm ci` put beside the project takes over.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import * as modules from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const NODE_MIN = [24, 3];

const here = dirname(fileURLToPath(import.meta.url));
const sources = join(here, '../main.ts');

function isOld(version) {
  const [major, minor] = version.split('.').map(Number);
  return major < NODE_MIN[0] || (major === NODE_MIN[0] && minor < NODE_MIN[1]);
}

/** The Node of the nearest node_modules above that has one. */
function projectNode() {
  for (let folder = join(here, '../..'); ; folder = dirname(folder)) {
    for (const path of ['node_modules/.bin/node', 'node_modules/node/bin/node']) {
      const node = join(folder, path);
      if (existsSync(node)) return node;
    }
    if (folder === dirname(folder)) return undefined;
  }
}

function runWith(node) {
  const child = spawn(node, [fileURLToPath(import.meta.url)].concat(process.argv.slice(2)), {
    stdio: 'inherit',
    env: Object.assign({}, process.env, { QANAT_NODE_TRIED: '1' }),
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('error', (error) => {
    console.error(`qanat: ${node}: ${error.message}`);
    process.exit(2);
  });
  child.on('exit', (code, signal) => {
    if (signal !== null) {
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    } else process.exit(code === null ? 1 : code);
  });
}

/**
 * Keeps what V8 makes of the sources in the `node_modules` that they run from, where that may be written and nobody has
 * said otherwise: a third of the time to start, and 16 MiB less in each thread, which then does not load the parser of
 * TypeScript. Whoever can write there can change the sources too. Threads know of it by their environment alone.
 */
function keepCompiled() {
  if (process.env.NODE_COMPILE_CACHE !== undefined || process.env.NODE_DISABLE_COMPILE_CACHE !== undefined) return;
  const installed = join(here, '../../..');
  const folder = existsSync(sources) ? join(here, '../../node_modules') : installed;
  if (!existsSync(folder) || !folder.endsWith('node_modules')) return;
  const { directory } = modules.enableCompileCache(join(folder, '.cache/qanat'));
  if (directory !== undefined) process.env.NODE_COMPILE_CACHE = join(folder, '.cache/qanat');
}

if (isOld(process.versions.node)) {
  const tried = process.env.QANAT_NODE_TRIED !== undefined;
  const node = existsSync(sources) && !tried ? projectNode() : undefined;
  if (node !== undefined) runWith(node);
  else {
    console.error(
      `qanat: needs Node.js ${NODE_MIN.join('.')} or newer, this is ${process.versions.node}: https://nodejs.org`,
    );
    process.exitCode = 2;
  }
} else {
  keepCompiled();
  // no top-level await: old Nodes would not parse it
  import(existsSync(sources) ? '../main.ts' : '../../dist/daemon/main.js')
    .then(({ main }) => main(process.argv.slice(2)))
    .then((code) => process.exit(code));
}
