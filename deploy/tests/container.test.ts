/** The image and the composition, by what can be checked without an engine. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { qanat } from '../../daemon/tests/command-run.ts';
import { check, DEPLOY, missing, ROOT } from './command-check.ts';

const CONTAINER = join(DEPLOY, 'container');
const HADOLINT = process.env.QANAT_HADOLINT ?? 'hadolint';
const dockerfile = readFileSync(join(CONTAINER, 'Dockerfile'), 'utf8');

interface Service {
  readonly image?: string;
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly command?: readonly string[];
  readonly volumes?: ReadonlyArray<{
    readonly type: string;
    readonly source: string;
    readonly target: string;
    readonly read_only?: boolean;
  }>;
  readonly ports: readonly string[];
  readonly cap_drop?: readonly string[];
  readonly read_only?: boolean;
  readonly security_opt?: readonly string[];
  readonly mem_limit?: string;
}

const compose = parse(readFileSync(join(CONTAINER, 'compose.yaml'), 'utf8'), { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>;
};

describe('the image', () => {
  test('is what hadolint takes', { skip: missing(HADOLINT) }, () => {
    const { code, text } = check(HADOLINT, ['--config', 'hadolint.yaml', 'Dockerfile'], CONTAINER);
    assert.equal(text, '');
    assert.equal(code, 0);
  });

  test('runs as somebody without rights, on the Node.js of the project', () => {
    const last = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '));
    assert.match(last, /^USER [1-9]\d*:[1-9]\d*$/m);
    assert.match(last, /^HEALTHCHECK /m);
    const { devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      devDependencies: Record<string, string>;
    };
    const bases = [...dockerfile.matchAll(/^FROM node:(\S+?)-/gm)].map((match) => match[1]);
    assert.deepEqual(bases, [devDependencies.node, devDependencies.node]);
  });

  test('starts with a command that there is', async () => {
    const command = JSON.parse(/^CMD (\[.*\])$/m.exec(dockerfile)![1]!) as string[];
    // not run: what it says of its help means that all options are known
    const { code, errors } = await qanat([...command, '--help']);
    assert.equal(code, 0, errors);
    const { text } = await qanat([command[0]!, '--help']);
    for (const flag of command.filter((word) => word.startsWith('--'))) assert.ok(text.includes(flag), flag);
  });
});

describe('the composition', () => {
  const dclint = join(ROOT, 'node_modules/.bin/dclint');
  test('is what dclint takes', () => {
    const { code, text } = check(process.execPath, [dclint, '--max-warnings', '0', 'compose.yaml'], CONTAINER);
    assert.equal(code, 0, text);
  });

  test('publishes to this machine alone, and gives nothing more rights than it needs', () => {
    for (const [name, service] of Object.entries(compose.services)) {
      for (const port of service.ports) assert.match(port, /^127\.0\.0\.1:\d+:\d+$/, name);
      assert.deepEqual(service.cap_drop, ['ALL'], name);
      assert.deepEqual(service.security_opt, ['no-new-privileges:true'], name);
      assert.equal(service.read_only, true, name);
      assert.ok(service.mem_limit !== undefined, name);
      assert.ok(
        service.build !== undefined || /:v?\d+\.\d+\.\d+$/.test(service.image ?? ''),
        `${name}: ${service.image}`,
      );
    }
  });

  test('mounts files that there are, and those of ours to be read only', () => {
    for (const [name, { volumes = [], build }] of Object.entries(compose.services)) {
      for (const { type, source, read_only } of volumes.filter((volume) => volume.type === 'bind')) {
        if (!source.startsWith('$')) assert.ok(existsSync(join(CONTAINER, source)), `${name}: ${type} ${source}`);
        assert.equal(read_only, true, `${name}: ${source}`);
      }
      if (build !== undefined) assert.ok(existsSync(join(CONTAINER, build.context, build.dockerfile)), name);
    }
  });

  test('has a daemon whose configuration holds, on the ports that are published and scraped', async () => {
    const file = join(CONTAINER, 'qanat.yaml');
    const { code, text, errors } = await qanat(['config', 'check', file, '--json']);
    assert.equal(code, 0, errors);
    assert.equal(JSON.parse(text).valid, true);
    const config = parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
    const inside = (name: string): number[] => compose.services[name]!.ports.map((port) => Number(port.split(':')[2]));
    const portOf = (address: unknown): number => Number(String(address).split(':').at(-1));
    assert.deepEqual(inside('daemon'), [portOf(config.metrics), portOf(config.listen)]);
    const command = dockerfile.slice(dockerfile.lastIndexOf('\nCMD '));
    const served = [...command.matchAll(/0\.0\.0\.0:(\d+)/g)].map((match) => Number(match[1]));
    assert.deepEqual(inside('serve'), served);
    const exposed = /^EXPOSE (.*)$/m.exec(dockerfile)![1]!.split(' ').map(Number);
    assert.deepEqual(exposed.toSorted(), [...served, ...inside('daemon')].toSorted());
    for (const [targets, address] of [
      ['serve.yml', `serve:${served[1]}`],
      ['client.yml', `daemon:${portOf(config.metrics)}`],
    ] as const) {
      const found = parse(readFileSync(join(CONTAINER, 'targets', targets), 'utf8')) as { targets: string[] }[];
      assert.deepEqual(found, [{ targets: [address] }]);
    }
  });
});

test('the composition with TLS names services, files, secrets and options that there are', async () => {
  const dclint = join(ROOT, 'node_modules/.bin/dclint');
  const { code, text } = check(process.execPath, [dclint, '--max-warnings', '0', 'compose.tls.yaml'], CONTAINER);
  assert.equal(code, 0, text);
  const tls = parse(readFileSync(join(CONTAINER, 'compose.tls.yaml'), 'utf8')) as {
    services: Record<string, { secrets: string[]; volumes?: Service['volumes']; command?: string[] }>;
    secrets: Record<string, unknown>;
  };
  const named = new Set<string>();
  for (const [name, { secrets, volumes = [] }] of Object.entries(tls.services)) {
    assert.ok(compose.services[name] !== undefined, name);
    for (const secret of secrets) named.add(secret);
    for (const { source, target } of volumes) {
      assert.ok(existsSync(join(CONTAINER, source)), source);
      assert.ok(
        compose.services[name].volumes?.some((volume) => volume.target === target),
        `${name}: ${target}`,
      );
    }
  }
  assert.deepEqual([...named].sort(), Object.keys(tls.secrets).sort());
  const { text: help } = await qanat(['serve', '--help']);
  for (const word of tls.services.serve!.command!.slice(2)) assert.ok(help.includes(word.split('=')[0]!), word);
  const config = await qanat(['config', 'check', join(CONTAINER, 'qanat.tls.yaml')]);
  assert.equal(config.code, 0, config.errors);
});

test('the example of a configuration holds', async () => {
  const { code, errors } = await qanat(['config', 'check', join(DEPLOY, 'qanat.example.yaml')]);
  assert.equal(code, 0, errors);
});
