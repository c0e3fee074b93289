/** The daemon's configuration: what is valid, how each mistake is told, what wins, what a reload changes. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { seededRandom } from '../../decode/tests/random.ts';
import { type DaemonConfig, planReload, resolveConfig } from '../config/config.ts';
import { type ConfigFile, type Problem, parseConfig } from '../config/file.ts';
import { nearest } from '../config/nearest.ts';
import { SETTING_NAMES } from '../config/schema.ts';
import { keyOf } from '../config/setting.ts';
import type { OptionOrigins, OptionValues } from '../options.ts';
import { qanat } from './command-run.ts';

const folder = mkdtempSync(join(tmpdir(), 'qanat-test-'));
after(() => rmSync(folder, { recursive: true }));

const EXAMPLE = join(import.meta.dirname, '../../deploy/qanat.example.yaml');

function fileOf(text: string): string {
  const path = join(folder, `${Math.random().toString(36).slice(2)}.yaml`);
  writeFileSync(path, text);
  return path;
}

async function resolve(text: string, options: OptionValues = {}, origins: OptionOrigins = {}): Promise<DaemonConfig> {
  const config = await resolveConfig({ options, origins }, fileOf(text));
  assert.ok(!Array.isArray(config), JSON.stringify(config));
  return config as DaemonConfig;
}

function problemsOf(text: string): readonly Problem[] {
  const parsed = parseConfig(text, 'q.yaml');
  assert.ok(Array.isArray(parsed), `valid: ${text}`);
  return parsed as readonly Problem[];
}

describe('a file with a mistake is told where, what was found and what was expected', () => {
  const cases: [what: string, text: string, at: string, path: string, says: RegExp][] = [
    ['a size that is none', 'memory: lots', '1:9', 'memory', /"lots" is no size: write bytes, or a number with KiB/],
    ['a size out of bounds', 'memory: 1KiB', '1:9', 'memory', /"1KiB" is out of bounds: at least 8 MiB/],
    ['a list for a number', 'decoders: [1]', '1:11', 'decoders', /expected a whole number, found a list/],
    ['a fraction', 'decoders: 1.5', '1:11', 'decoders', /"1.5": expected a whole number, from 1 to 64/],
    ['a negative number', 'max-scans: -1', '1:12', 'max-scans', /"-1": expected a whole number/],
    ['no number', 'decoders: .nan', '1:11', 'decoders', /expected a whole number, found NaN/],
    ['a switch that is none', 'wire-checksum: maybe', '1:16', 'wire-checksum', /expected true or false/],
    ['nothing', 'stall-timeout:', '1:15', 'stall-timeout', /expected a time such as 30s or 500ms, found nothing/],
    [
      'a level that is none',
      'log-level: loud',
      '1:12',
      'log-level',
      /"loud": expected one of debug, info, warn, error/,
    ],
    ['an address without a port', 'listen: localhost', '1:9', 'listen', /expected host:port, such as/],
    ['a misspelt key', '\nprefech-depth: 2', '2:1', 'prefech-depth', /unknown key; did you mean "prefetch-depth"\?/],
    ['a key in another style', 'maxGap: auto', '1:1', 'maxGap', /did you mean "max-gap"\?/],
    ['a key that is like none', 'colour: red', '1:1', 'colour', /unknown key; expected one of sources, listen, /],
    ['a key of the prototype', '__proto__: {a: 1}', '1:1', '__proto__', /unknown key/],
    ['a list of settings', '- memory', '1:1', '', /expected a map of settings, found a list/],
    ['a text of settings', 'memory', '1:1', '', /expected a map of settings, found "memory"/],
    ['a list of sources', 'sources: [a, b]', '1:10', 'sources', /expected a map of names to locations, found a list/],
    ['a source of no kind', 'sources: {a: 5}', '1:14', 'sources.a', /expected a location, or a map with one, found 5/],
    ['a scheme that is none', 'sources:\n  a: gopher://x', '2:6', 'sources.a', /gopher:\/\/, which is not supported/],
    ['a source without a location', 'sources:\n  a: {max-gap: auto}', '2:6', 'sources.a.location', /found nothing/],
    [
      'a misspelt key of a source',
      'sources:\n  a:\n    location: /x\n    conections: 2',
      '4:5',
      'sources.a.conections',
      /did you mean "connections"\?/,
    ],
    [
      'a setting of the daemon in a source',
      'sources:\n  a:\n    location: /x\n    memory: 1GiB',
      '4:5',
      'sources.a.memory',
      /holds for the daemon, not for one source/,
    ],
    ['a name for a path', 'sources:\n  "a/b": /x', '2:3', 'sources."a/b"', /not a name for a source: letters/],
    ['a name of the prototype', 'sources:\n  __proto__: /x', '2:3', 'sources.__proto__', /not a name for a source/],
    ['a key given twice', 'memory: 1GiB\nmemory: 2GiB', '2:1', '', /not valid YAML: Map keys must be unique/],
    ['an open bracket', 'sources: {a: /x', '1:16', '', /not valid YAML: /],
    ['two documents', '--- {}\n--- {}', '2:1', '', /not valid YAML: Source contains multiple documents/],
    ['an unknown tag', 'memory: !!size 1GiB', '1:9', '', /not valid YAML: Unresolved tag/],
    ['an alias of nothing', 'memory: *m', '1:9', '', /not valid YAML: Unresolved alias/],
  ];
  for (const [what, text, at, path, says] of cases) {
    test(what, () => {
      const [problem, ...more] = problemsOf(text);
      assert.deepEqual(more, []);
      assert.equal(`${problem!.place?.line}:${problem!.place?.column}`, at);
      assert.equal(problem!.path, path);
      assert.match(problem!.message, says);
    });
  }

  test('every mistake is told, in the order of the file', () => {
    const problems = problemsOf('memory: x\nsources:\n  a: gopher://x\n  "?": /x\ndecoder: 1\nmax-gap: {}\n');
    assert.deepEqual(
      problems.map(({ place }) => place?.line),
      [1, 3, 4, 5, 6],
    );
  });

  test('aliases that multiply are refused, not expanded', () => {
    const levels = Array.from({ length: 20 }, (_, k) => `a${k + 1}: &a${k + 1} [${`*a${k},`.repeat(9)}]`);
    const [problem] = problemsOf(`a0: &a0 [x]\n${levels.join('\n')}\n`);
    assert.match(problem!.message, /alias/i);
  });

  test('of a file of nothing but mistakes, a hundred are told, in time that grows with its length only', () => {
    const lines = (count: number, line: (k: number) => string): string =>
      Array.from({ length: count }, (_, k) => line(k)).join('');
    // each with each would take minutes
    const count = 20_000;
    assert.equal(problemsOf(lines(count, (k) => `k${k}: 1\n`)).length, 100);
    assert.equal(problemsOf(`sources:\n${lines(count, (k) => `  _${k}: 1\n`)}`).length, 100);
    assert.equal(problemsOf(lines(count, (k) => `k${k % 1000}: 1\n`)).length, 100);
    const twice = problemsOf('sources: {a: [{b: {c: 1, d: 2, c: 3}}]}\n? [{e: 1, "e": 2}]\n: 1\n');
    assert.deepEqual(
      twice.map(({ place }) => place),
      [
        { line: 1, column: 32 },
        { line: 2, column: 11 },
      ],
    );
  });

  test('secrets in a location are not told', () => {
    const [problem] = problemsOf('sources:\n  a: https://me:hunter2@host/x?X-Amz-Signature=abcdef\n');
    assert.doesNotMatch(problem!.message, /hunter2|abcdef|me:/);
    assert.match(problem!.message, /host/);
  });

  test('changed at random, the example is valid or told with places, and never more than that', () => {
    const random = seededRandom();
    const example = readFileSync(EXAMPLE, 'utf8').replaceAll('# ', '');
    const bits = [
      '\n',
      ' ',
      ':',
      '-',
      '{',
      '[',
      '&a',
      '*a',
      '!',
      '"',
      '|',
      '%',
      '\t',
      '  x: 1\n',
      'sources:',
      '~',
      '0',
    ];
    let invalid = 0;
    for (let run = 0; run < 300; run++) {
      let text = run % 2 === 0 ? example : readFileSync(EXAMPLE, 'utf8');
      for (let edits = 1 + random.below(4); edits > 0; edits--) {
        const at = random.below(text.length);
        text = text.slice(0, at) + bits[random.below(bits.length)]! + text.slice(at + random.below(12));
      }
      const parsed = parseConfig(text, 'q.yaml');
      if (!Array.isArray(parsed)) continue;
      invalid++;
      assert.ok(parsed.length > 0);
      const lines = text.split('\n').length;
      for (const { message, place } of parsed as readonly Problem[]) {
        assert.ok(message.length > 0);
        if (place !== undefined) assert.ok(place.line >= 1 && place.line <= lines + 1 && place.column >= 1);
      }
    }
    assert.ok(invalid > 50, `${invalid} of 300 were invalid`);
  });
});

describe('what holds', () => {
  test('the example of deploy/ is valid, and names every setting', async () => {
    const text = readFileSync(EXAMPLE, 'utf8');
    const config = await resolve(text);
    assert.deepEqual([...config.sources.keys()], ['lake', 'orders']);
    assert.equal(config.sources.get('orders')!.prefetchDepth, 4);
    for (const name of SETTING_NAMES) assert.match(text, new RegExp(`^(# )?${keyOf(name)}: `, 'm'), keyOf(name));
    // what is commented out is what holds without it
    const defaults = await resolve('{}');
    const spelled = await resolve(text.replace(/^# ([a-z-]+: )/gm, '$1'), { decoders: defaults.settings.decoders });
    assert.deepEqual(spelled.settings, defaults.settings);
  });

  test('so is that of the container', async () => {
    const { settings, sources } = await resolve(readFileSync(join(EXAMPLE, '../container/qanat.yaml'), 'utf8'));
    assert.equal(settings.insecureListen, true);
    assert.equal(sources.size, 1);
  });

  test('an empty file, an empty map of sources and comments are valid', async () => {
    for (const text of ['', '# nothing\n', 'sources:\n', 'sources: {}\n', '--- \n']) {
      const { sources, settings } = await resolve(text);
      assert.equal(sources.size, 0);
      assert.deepEqual(settings.listen, { host: '127.0.0.1', port: 7491 });
      assert.deepEqual(settings.metrics, { host: '127.0.0.1', port: 7490 });
    }
  });

  test('values in every form that YAML has for them', async () => {
    const { settings } = await resolve(
      'memory: 0x10000000\ndecoders: "3"\nmax-gap: 64 KiB\nwire-checksum: on\nverify-checksums: no\n' +
        'stall-timeout: 2\nclient-timeout: 500ms\nmetrics: none\nprefetch-depth: auto\nlisten: "[::1]:0"\n',
    );
    assert.equal(settings.memory, 2 ** 28);
    assert.equal(settings.decoders, 3);
    assert.equal(settings.maxGap, 65536);
    assert.equal(settings.wireChecksum, true);
    assert.equal(settings.verifyChecksums, false);
    assert.equal(settings.stallTimeout, 2000);
    assert.equal(settings.clientTimeout, 500);
    assert.equal(settings.metrics, 'none');
    assert.equal(settings.prefetchDepth, 'auto');
    assert.deepEqual(settings.listen, { host: '::1', port: 0 });
  });

  test('a flag wins over a variable, a variable over the file, the file over the default', async () => {
    const options = { memory: 2 ** 26, decoders: 2, source: [{ name: 'b', location: '/flag' }] };
    const origins = { memory: 'flag', decoders: 'variable', source: 'variable' } as const;
    const text = 'memory: 1GiB\ndecoders: 5\nmax-gap: 1MiB\nsources:\n  a: /file\n  b: /file\n';
    const config = await resolve(text, options, origins);
    assert.equal(config.settings.memory, 2 ** 26);
    assert.deepEqual(config.origins.get('memory'), { from: 'flag', where: '--memory' });
    assert.deepEqual(config.origins.get('decoders'), { from: 'variable', where: 'QANAT_DECODERS' });
    assert.match(config.origins.get('max-gap')!.where, /\.yaml:3:10$/);
    assert.equal(config.origins.get('max-gap')!.from, 'file');
    assert.deepEqual(config.origins.get('connections'), { from: 'default', where: '' });
    assert.equal(config.sources.get('a')!.location, '/file');
    assert.equal(config.sources.get('b')!.location, '/flag');
    assert.deepEqual(config.origins.get('sources.b'), { from: 'variable', where: 'QANAT_SOURCE' });
    assert.match(config.origins.get('sources.a')!.where, /:5:6$/);
  });

  test('a source has the settings of all, but for its own', async () => {
    const text = 'max-gap: 1MiB\nconnections: 3\nsources:\n  a: {location: /x, max-gap: 2MiB}\n  b: /x\n';
    const { sources } = await resolve(text);
    assert.equal(sources.get('a')!.maxGap, 2 ** 21);
    assert.equal(sources.get('a')!.connections, 3);
    assert.equal(sources.get('b')!.maxGap, 2 ** 20);
    assert.equal(sources.get('a')!.folder, folder);
  });

  test('an address that others reach has to be asked for', async () => {
    for (const key of ['listen', 'metrics']) {
      const given = { options: {}, origins: {} };
      const problems = await resolveConfig(given, fileOf(`\n${key}: 0.0.0.0:0\n`));
      assert.ok(Array.isArray(problems));
      assert.deepEqual(problems[0]!.place, { line: 2, column: key.length + 3 });
      assert.match(problems[0]!.message, /no authentication; insecure-listen: true allows it/);
      await resolve(`${key}: 0.0.0.0:0\ninsecure-listen: true\n`);
    }
  });
});

describe('a reload', () => {
  test('changes what is live, keeps the rest and says so', async () => {
    const before = await resolve(
      'memory: 64MiB\nmax-gap: auto\nlog-level: info\nsources:\n  a: /a\n  b: /b\n  c: /c\n',
    );
    const text =
      'memory: 128MiB\ndecoders: 7\nmax-gap: 1MiB\nlog-level: debug\nlisten: 127.0.0.1:1\nsources:\n  a: /a2\n  d: /d\n';
    const { config, changed, kept } = planReload(before, await resolve(text));
    assert.deepEqual(kept.map(({ path }) => path).sort(), ['decoders', 'listen', 'memory']);
    assert.deepEqual(
      kept.find(({ path }) => path === 'memory'),
      { path: 'memory', before: '64 MiB', after: '128 MiB' },
    );
    assert.deepEqual(
      changed.map(({ path }) => path),
      ['max-gap', 'log-level', 'sources.a', 'sources.b', 'sources.c', 'sources.d'],
    );
    assert.equal(config.settings.memory, 64 << 20);
    assert.equal(config.settings.maxGap, 2 ** 20);
    assert.deepEqual([...config.sources.keys()], ['a', 'd']);
    // told once, and again at every reload as long as it is so
    assert.equal(planReload(config, await resolve(text)).changed.length, 0);
    assert.equal(planReload(config, await resolve(text)).kept.length, 3);
  });
});

describe('names that somebody meant', () => {
  test('are found by a letter too many, too few, swapped, or in another style', () => {
    const names = SETTING_NAMES.map(keyOf);
    for (const [written, meant] of [
      ['memroy', 'memory'],
      ['decoder', 'decoders'],
      ['prefetch_depth', 'prefetch-depth'],
      ['PrefetchDepth', 'prefetch-depth'],
      ['maxscan', 'max-scans'],
      ['logLevel', 'log-level'],
      ['colour', undefined],
      ['', undefined],
    ] as const) {
      assert.equal(nearest(written, names), meant, written);
    }
    assert.equal(nearest('batchrow', ['batchRows', 'columns']), 'batchRows');
  });
});

describe('qanat config check', () => {
  test('shows every value with where it comes from, as text and as JSON', async () => {
    const path = fileOf('memory: 64MiB\nsources:\n  lake: rdma://h/x\n');
    const env = { QANAT_DECODERS: '3', QANAT_MAX_SCANS: '4' };
    const { code, text, errors } = await qanat(['config', 'check', path, '--max-scans', '5'], { env });
    assert.equal(errors, '');
    assert.equal(code, 0);
    assert.match(text, new RegExp(`^memory +64 MiB +${path}:1:9$`, 'm'));
    assert.match(text, /^decoders +3 +QANAT_DECODERS$/m);
    assert.match(text, /^max-scans +5 +--max-scans$/m);
    assert.match(text, /^max-gap +auto +default$/m);
    assert.match(text, new RegExp(`^sources.lake +rdma://h/x +${path}:3:9$`, 'm'));
    const json = await qanat(['config', 'check', path, '--json'], { env });
    const { valid, file, values } = JSON.parse(json.text);
    assert.equal(valid, true);
    assert.equal(file, path);
    assert.deepEqual(values.memory, { value: 2 ** 26, from: 'file', where: `${path}:1:9` });
    assert.deepEqual(values.listen, { value: '127.0.0.1:7491', from: 'default', where: '' });
    assert.deepEqual(Object.keys(values).sort(), [...SETTING_NAMES.map(keyOf), 'sources.lake'].sort());
  });

  test('mistakes end it with 2, a file that can not be read with 1', async () => {
    const path = fileOf('memory: lots\ndecodrs: 2\n');
    const bad = await qanat(['config', 'check', path]);
    assert.equal(bad.code, 2);
    assert.equal(bad.text, '');
    assert.equal(
      bad.errors,
      `qanat config: ${path} has 2 mistakes\n` +
        `  ${path}:1:9: memory: "lots" is no size: write bytes, or a number with KiB, MiB, GiB, KB, MB or GB\n` +
        `  ${path}:2:1: decodrs: unknown key; did you mean "decoders"?\n`,
    );
    const json = await qanat(['config', 'check', path, '--json']);
    assert.equal(json.code, 2);
    const { valid, problems } = JSON.parse(json.text);
    assert.equal(valid, false);
    assert.deepEqual(problems[1], {
      path: 'decodrs',
      message: 'unknown key; did you mean "decoders"?',
      place: { line: 2, column: 1 },
    });
    const missing = await qanat(['config', 'check', join(folder, 'nothing.yaml')]);
    assert.equal(missing.code, 1);
    assert.match(missing.errors, /can't read the configuration .*nothing\.yaml: there is no such file\n$/);
    const other = await qanat(['config', 'chekc']);
    assert.equal(other.code, 2);
    const daemon = await qanat(['daemon', '--config', path]);
    assert.equal(daemon.code, 2);
    assert.match(daemon.errors, /has 2 mistakes/);
  });

  test('a file that is no text, and one without an end, are refused', async () => {
    const binary = fileOf('');
    writeFileSync(binary, Buffer.from([0x6d, 0xff, 0xfe]));
    await assert.rejects(resolveConfig({ options: {}, origins: {} }, binary), /it is not UTF-8/);
    await assert.rejects(resolveConfig({ options: {}, origins: {} }, '/dev/zero'), /it has more than 1 MiB/);
    await assert.rejects(resolveConfig({ options: {}, origins: {} }, folder), /it is a folder/);
  });

  test('a place is where the value stands, whatever stands around it', () => {
    const parsed = parseConfig('# c\n\nsources: { a: "/x", b: { location: /y } }\n"max-gap":   auto\n', 'q.yaml');
    const { placeOf } = parsed as ConfigFile;
    assert.deepEqual(placeOf(['sources', 'a']), { line: 3, column: 15 });
    assert.deepEqual(placeOf(['sources', 'b', 'location']), { line: 3, column: 36 });
    assert.deepEqual(placeOf(['max-gap']), { line: 4, column: 14 });
  });
});
