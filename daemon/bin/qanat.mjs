#!/usr/bin/env node
/**
 * The `qanat` command. Plain JavaScript that old Nodes parse: the rest is TypeScript, which needs Node 24. Where the
 * Node that runs this is older, the one that `npm install` put beside the project takes over.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const NODE_MIN = [24, 3];

const here = dirname(fileURLToPath(import.meta.url));

function isOld(version) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major < NODE_MIN[0] || (major === NODE_MIN[0] && minor < NODE_MIN[1]);
}

/** The Node of the nearest node_modules above that has one. */
function projectNode() {
  for (let folder = resolve(here, '../..'); ; folder = dirname(folder)) {
    for (const path of ['node_modules/.bin/node', 'node_modules/node/bin/node']) {
      const node = join(folder, path);
      if (existsSync(node)) return node;
    }
    if (folder === dirname(folder)) return undefined;
  }
}

function runWith(node) {
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: 'inherit',
    env: { ...process.env, QANAT_NODE_TRIED: '1' },
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
    } else process.exit(code ?? 1);
  });
}

if (isOld(process.versions.node)) {
  const node = process.env.QANAT_NODE_TRIED === undefined ? projectNode() : undefined;
  if (node !== undefined) runWith(node);
  else {
    console.error(
      `qanat: needs Node.js ${NODE_MIN.join('.')} or newer, this is ${process.versions.node}: https://nodejs.org`,
    );
    process.exit(2);
  }
} else {
  const { main } = await import('../main.ts');
  process.exit(await main(process.argv.slice(2)));
}
