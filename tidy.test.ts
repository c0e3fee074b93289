/**
 * The rules of the code base that a machine can check: which folder may import which, and through which door; no import
 * cycles; sizes, names and bounds of files; no `any`; few importers per dependency; nothing about the machine that it
 * was written on. A rule that is only written down is not kept.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { test } from 'node:test';

/**
 * What each part may import of the others, always through their index.ts. `protocol` is storage-server/protocol, and
 * `verbs` storage-server/verbs.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  daemon: ['vfs', 'fetcher', 'decode', 'storage-server', 'verbs', 'protocol', 'metrics'],
  vfs: ['fetcher', 'decode', 'protocol', 'metrics'],
  fetcher: ['decode', 'verbs', 'protocol', 'metrics'],
  'storage-server': ['verbs', 'protocol', 'metrics'],
  metrics: [],
  decode: [],
  verbs: ['protocol'],
  protocol: [],
};

const LINES_MAX = 400;

/** Files outside tests and benchmarks that may import a package, where that is more than three. */
const IMPORTERS_MAX: Readonly<Record<string, number>> = {
  'apache-arrow': 8, // record batches are what the daemon hands out
  commander: 10, // one file per command
};
const IMPORTERS_MAX_DEFAULT = 3;

/** Exported bounds that do not stand in a limits.ts, with the reason. */
const BOUNDS_ELSEWHERE = new Set([
  'daemon/output/digits.ts', // lengths of the texts it writes: they follow from its code
  'decode/kernels/layout.ts', // also read by the build of the kernels, which runs before everything else
]);

/** Generated files that are committed, with the reason. */
const GENERATED_AND_KEPT = new Set([
  'daemon/mount/warm-up.parquet', // users' mounts read it; bench/make-warm-up.ts makes it with DuckDB, the same for all
]);

const root = import.meta.dirname;
const tracked = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' })
  .split('\0')
  .filter((path) => path !== '' && existsSync(join(root, path)));
const sources = tracked.filter((path) => path.endsWith('.ts'));
const contents = new Map(tracked.map((path) => [path, readFileSync(join(root, path), 'utf8')]));
const text = (path: string): string => contents.get(path)!;

/** Tests and benchmarks look inside; AssemblyScript is a language of its own. */
const isInside = (path: string): boolean =>
  /(^|\/)(tests|bench)\//.test(path) || path.endsWith('.test.ts') || path.includes('/assembly/');
const product = sources.filter((path) => !isInside(path));

function partOf(path: string): string {
  const inner = /^storage-server\/(protocol|verbs)\//.exec(path)?.[1];
  return inner ?? path.split('/')[0]!;
}

/** The source without comments, strings, templates and regular expressions: what is left are names and marks. */
function codeOnly(source: string): string {
  const skipped =
    /\/\*[\s\S]*?\*\/|\/\/.*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|(?<=[=(,:?&|!;{}[\n]\s*)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/g;
  return source.replace(skipped, '""');
}

function withoutComments(source: string): string {
  return source.replace(/'(?:\\.|[^'\\\n])*'|\/\*[\s\S]*?\*\/|\/\/.*/g, (match) =>
    match.startsWith("'") ? match : '',
  );
}

/** Specifiers of a file's imports and re-exports, types included. */
function importsOf(path: string): string[] {
  const pattern = /^\s*(?:import|export)\b[^'"`;]*?\bfrom\s+'([^']+)'|^\s*import\s+'([^']+)'|\bimport\('([^']+)'\)/gm;
  return [...withoutComments(text(path)).matchAll(pattern)].map((match) => match[1] ?? match[2] ?? match[3]!);
}

const resolveImport = (path: string, specifier: string): string => normalize(join(dirname(path), specifier));

function none(problems: readonly string[], rule: string): void {
  assert.equal(problems.length, 0, `${rule}\n  ${problems.join('\n  ')}`);
}

test('parts import only what is below them, through its index.ts', () => {
  const problems: string[] = [];
  for (const path of product) {
    const part = partOf(path);
    const allowed = MAY_IMPORT[part];
    if (allowed === undefined) continue;
    for (const specifier of importsOf(path).filter((one) => one.startsWith('.'))) {
      const target = resolveImport(path, specifier);
      const other = partOf(target);
      if (target === 'package.json') continue;
      if (!sources.includes(target)) problems.push(`${path} imports ${specifier}, which is not in the repository`);
      else if (other === part) continue;
      else if (!allowed.includes(other)) problems.push(`${path} may not import ${target}`);
      else if (basename(target) !== 'index.ts')
        problems.push(`${path} imports ${target}, not the index.ts of ${other}`);
    }
  }
  none(problems, 'Imports between parts follow the table above.');
});

test('product code imports neither tests nor benchmarks, nor packages for development', () => {
  const { devDependencies } = JSON.parse(text('package.json')) as { devDependencies: Record<string, string> };
  const problems: string[] = [];
  for (const path of product.filter((one) => MAY_IMPORT[partOf(one)] !== undefined)) {
    for (const specifier of importsOf(path)) {
      const relative = specifier.startsWith('.');
      if (relative && isInside(resolveImport(path, specifier))) problems.push(`${path} imports ${specifier}`);
      if (!relative && devDependencies[packageOf(specifier)] !== undefined && path !== 'decode/kernels/build.ts') {
        problems.push(`${path} imports ${specifier}, which users do not have`);
      }
    }
  }
  none(problems, 'What users run holds nothing of tests and tools.');
});

const packageOf = (specifier: string): string => /^(?:@[^/]+\/)?[^/]+/.exec(specifier)![0];

test('no import cycles', () => {
  const graph = new Map(
    sources.map((path) => {
      const relative = importsOf(path).filter((specifier) => specifier.startsWith('.'));
      return [path, relative.map((specifier) => resolveImport(path, specifier))] as const;
    }),
  );
  const done = new Set<string>();
  const problems: string[] = [];
  const visit = (path: string, above: readonly string[]): void => {
    const at = above.indexOf(path);
    if (at >= 0) {
      problems.push([...above.slice(at), path].join(' -> '));
      return;
    }
    if (done.has(path)) return;
    for (const next of graph.get(path) ?? []) visit(next, [...above, path]);
    done.add(path);
  };
  for (const path of graph.keys()) visit(path, []);
  none(problems, 'Files do not import each other in a circle, not even types.');
});

test('files are short enough to be read', () => {
  const long = sources.map((path) => [path, text(path).split('\n').length - 1] as const);
  const problems = long.filter(([, lines]) => lines > LINES_MAX).map(([path, lines]) => `${path} has ${lines} lines`);
  none(problems, `No file is longer than ${LINES_MAX} lines: split it by noun.`);
});

test('names say what is inside', () => {
  const problems: string[] = [];
  for (const path of sources) {
    const segments = path.split('/');
    for (const [k, segment] of segments.entries()) {
      const name =
        k === segments.length - 1 ? segment.replace(/(\.test|\.slow-test|\.vm-test|\.d)?\.ts$/, '') : segment;
      if (!/^\.?[a-z0-9]+(-[a-z0-9]+)*$/.test(name)) problems.push(`${path}: ${segment} is not kebab-case`);
      if (/(^|-)(utils?|helpers?|common|misc)($|-)/.test(name)) problems.push(`${path}: ${segment} says nothing`);
    }
  }
  none([...new Set(problems)], 'Files and folders have kebab-case names that mean something.');
});

test('no any', () => {
  const problems: string[] = [];
  for (const path of sources.filter((one) => !one.includes('/assembly/'))) {
    for (const [k, line] of codeOnly(text(path)).split('\n').entries()) {
      if (/(?<![.\w])any\b(?!\s*[(:?])/.test(line)) problems.push(`${path}: ${line.trim()} (about line ${k + 1})`);
    }
    if (text(path).includes('noExplicit' + 'Any')) problems.push(`${path} switches the rule off`);
  }
  none(problems, 'Types are said, or unknown.');
});

test('a file begins with what it is for', () => {
  const described = sources.filter((path) => !/\.(test|d)\.ts$/.test(path));
  const problems = described.filter((path) => !/^(#!.*\n)?(\/\*\*?|\/\/)/.test(text(path)));
  none(problems, "A file's first comment is its contract: what, why, what not.");
});

test('bounds stand in limits.ts, each with its reason', () => {
  const problems: string[] = [];
  for (const path of product.filter((one) => MAY_IMPORT[partOf(one)] !== undefined)) {
    const lines = text(path).split('\n');
    for (const [k, line] of lines.entries()) {
      const name = /^(?:export )?const ([A-Z][A-Z0-9_]*)\b/.exec(line)?.[1];
      if (name === undefined) continue;
      const isLimits = basename(path) === 'limits.ts';
      const isBound = /_(MAX|MIN)$/.test(name);
      if (!isLimits && !isBound) continue;
      if (!isExplained(lines, k)) problems.push(`${path}:${k + 1} ${name} has no comment`);
      if (!isLimits && line.startsWith('export ') && isBound && !BOUNDS_ELSEWHERE.has(path)) {
        problems.push(`${path}:${k + 1} exports ${name}: it belongs in a limits.ts`);
      }
    }
  }
  none(problems, 'Every number explains itself: unit and reason, in one place per folder.');
});

/** A comment stands above the line, or above the constant just before it. */
function isExplained(lines: readonly string[], at: number): boolean {
  if (/\S\s*\/\/ \S/.test(lines[at]!)) return true;
  const above = lines[at - 1]?.trim() ?? '';
  if (above.endsWith('*/') || above.startsWith('//')) return true;
  return /^(export )?const [A-Z]/.test(above) && isExplained(lines, at - 1);
}

test('packages are imported by few files', () => {
  const importers = new Map<string, string[]>();
  for (const path of product.filter((one) => MAY_IMPORT[partOf(one)] !== undefined)) {
    for (const specifier of new Set(
      importsOf(path)
        .filter((one) => !/^(\.|node:)/.test(one))
        .map(packageOf),
    )) {
      importers.set(specifier, [...(importers.get(specifier) ?? []), path]);
    }
  }
  const problems = [...importers]
    .filter(([name, paths]) => paths.length > (IMPORTERS_MAX[name] ?? IMPORTERS_MAX_DEFAULT))
    .map(([name, paths]) => `${name} is imported by ${paths.length} files: ${paths.join(', ')}`);
  none(problems, 'A package that is imported everywhere can never be replaced.');
});

test('nothing tells of the machine it was written on', () => {
  // in pieces, so that this file does not find itself
  const machine = new RegExp(`(?<![\\w.$}])/(?:${['work', 'home', 'root', 'Users'].join('|')})/[\\w.-]`);
  const neighbour = new RegExp(`\\.\\./${'shared'}/(?!corpus)`);
  const problems: string[] = [];
  for (const path of tracked.filter((one) => one !== 'package-lock.json')) {
    for (const [k, line] of text(path).split('\n').entries()) {
      if (machine.test(line) || neighbour.test(line)) problems.push(`${path}:${k + 1} ${line.trim().slice(0, 100)}`);
    }
  }
  none(problems, 'Paths of one machine and private documents have no place here.');
});

test('nothing generated is committed', () => {
  const problems = tracked.filter(
    (path) => /\.(wasm|parquet|tsbuildinfo|log)$|^(build|node_modules)\//.test(path) && !GENERATED_AND_KEPT.has(path),
  );
  none(problems, 'What can be made is made.');
});
