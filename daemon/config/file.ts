/**
 * A configuration file: YAML text to values, or to problems that each name the place in the file, what was found there
 * and what was expected. Reads one document of YAML 1.2; a key given twice, an unknown key and an unknown tag are
 * problems. Nothing of the file takes effect unless all of it is valid.
 */
import { open } from 'node:fs/promises';
import {
  type Document,
  isCollection,
  isMap,
  isPair,
  isScalar,
  LineCounter,
  type Node,
  parseDocument,
  visit,
} from 'yaml';
import { formatBytes } from '../argument.ts';
import { CommandError } from '../errors.ts';
import { redact } from '../secrets.ts';
import { CONFIG_BYTES_MAX, PROBLEMS_MAX, SOURCES_MAX, YAML_ALIASES_MAX } from './limits.ts';
import { nearest } from './nearest.ts';
import {
  configSchema,
  type FileValues,
  type SchemaIssue,
  SETTING_NAMES,
  SOURCE_NAME,
  SOURCE_NAME_RULE,
  SOURCE_SETTINGS,
} from './schema.ts';
import { keyOf } from './setting.ts';

/** A place in a file; lines and columns count from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

export interface Problem {
  /** Where in the configuration: `sources.lake.max-gap`; '' for all of it. */
  readonly path: string;
  readonly message: string;
  /** Where in the file, where it is there at all. */
  readonly place?: Place;
}

export interface ConfigFile {
  /** As it was named. */
  readonly path: string;
  readonly values: FileValues;
  /** Where the value of a path such as ['sources', 'lake'] stands. */
  readonly placeOf: (path: readonly PropertyKey[]) => Place | undefined;
}

/** Reads a file's text. Throws CommandError CONFIG_FILE. */
export async function readConfigText(path: string): Promise<string> {
  const cant = (why: string, cause?: unknown): CommandError =>
    new CommandError('CONFIG_FILE', `can't read the configuration ${path}: ${why}`, { cause });
  try {
    const file = await open(path);
    try {
      const { size } = await file.stat();
      // what is no regular file (a pipe, as <(…) is) has no size: it is read up to one byte too many
      if (size > CONFIG_BYTES_MAX) throw cant(`it has more than ${formatBytes(CONFIG_BYTES_MAX)}`);
      const bytes = Buffer.alloc(CONFIG_BYTES_MAX + 1);
      let length = 0;
      for (let read = 1; read > 0 && length < bytes.length; length += read) {
        read = (await file.read(bytes, length, bytes.length - length)).bytesRead;
      }
      if (length > CONFIG_BYTES_MAX) throw cant(`it has more than ${formatBytes(CONFIG_BYTES_MAX)}`);
      return new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(0, length));
    } finally {
      await file.close();
    }
  } catch (error) {
    if (error instanceof CommandError) throw error;
    if (error instanceof TypeError) throw cant('it is not UTF-8', error);
    const { code, message } = error as NodeJS.ErrnoException;
    const why = { ENOENT: 'there is no such file', EACCES: 'it may not be read', EISDIR: 'it is a folder' }[code ?? ''];
    throw cant(why ?? message, error);
  }
}

/** The values of a text, or all that is wrong with it. */
export function parseConfig(text: string, path: string): ConfigFile | readonly Problem[] {
  const lines = new LineCounter();
  // its own look for keys that are given twice compares each with each
  const options = { lineCounter: lines, prettyErrors: false, logLevel: 'error', uniqueKeys: false } as const;
  const document = parseDocument(text, options);
  const placeAt = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  const faults = [...document.errors, ...document.warnings];
  if (faults.length > 0) {
    const told = faults.map(({ message, pos }) => ({
      path: '',
      message: `not valid YAML: ${redact(message)}`,
      place: placeAt(pos[0]),
    }));
    return bounded(told);
  }
  const root = document.contents;
  const twice = keysGivenTwice(root);
  if (twice.length > 0) {
    const told = twice.map((at) => ({
      path: '',
      message: 'not valid YAML: Map keys must be unique',
      place: placeAt(at),
    }));
    return bounded(told.sort(byPlace));
  }
  const positions: Positions = { root, placeAt };
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: YAML_ALIASES_MAX }) ?? {};
  } catch (error) {
    const at = unresolvedAlias(document);
    const message = `not valid YAML: ${redact((error as Error).message)}`;
    return [{ path: '', message, ...(at === undefined ? {} : { place: placeAt(at) }) }];
  }
  const problems = sourceProblems(value, positions);
  const checked = configSchema.safeParse(value);
  if (!checked.success) {
    for (const issue of checked.error.issues.slice(0, PROBLEMS_MAX)) problems.push(...problemsOf(issue, positions));
  }
  if (problems.length > 0 || !checked.success) return bounded(problems.sort(byPlace));
  return { path, values: checked.data, placeOf: (at) => placeOf(positions, at)?.place };
}

function bounded(problems: readonly Problem[]): readonly Problem[] {
  return problems.slice(0, PROBLEMS_MAX);
}

/** Where keys stand that their map has already. Without recursion: a file may be as deep as it is long. */
function keysGivenTwice(root: Node | null): number[] {
  const found: number[] = [];
  const rest: unknown[] = [root];
  while (rest.length > 0) {
    const node = rest.pop();
    if (isPair(node)) rest.push(node.key, node.value);
    if (!isCollection(node)) continue;
    const keys = new Set<string>();
    for (const item of node.items) {
      rest.push(item);
      if (!isMap(node) || !isPair(item) || !isScalar(item.key)) continue;
      const key = String(item.key.value);
      if (keys.has(key)) found.push(rangeStart(item.key) ?? 0);
      keys.add(key);
    }
  }
  return found;
}

/** Where the first alias of something that there is not stands. */
function unresolvedAlias(document: Document): number | undefined {
  let at: number | undefined;
  visit(document, {
    Alias(_, node) {
      if (node.resolve(document) !== undefined) return undefined;
      at = node.range?.[0];
      return visit.BREAK;
    },
  });
  return at;
}

interface Positions {
  readonly root: Node | null;
  readonly placeAt: (offset: number) => Place;
}

const byPlace = ({ place: a }: Problem, { place: b }: Problem): number =>
  (a?.line ?? 0) - (b?.line ?? 0) || (a?.column ?? 0) - (b?.column ?? 0);

/** What the schema can't say with a place in the file: names and number of sources. */
function sourceProblems(value: unknown, positions: Positions): Problem[] {
  const sources = (value as { sources?: unknown }).sources;
  if (typeof sources !== 'object' || sources === null || Array.isArray(sources)) return [];
  const names = Object.keys(sources);
  const problems = names
    .filter((name) => !SOURCE_NAME.test(name))
    .slice(0, PROBLEMS_MAX)
    .map((name) => problem(positions, ['sources', name], `not a name for a source: ${SOURCE_NAME_RULE}`, true));
  if (names.length > SOURCES_MAX) {
    problems.push(problem(positions, ['sources'], `expected at most ${SOURCES_MAX} sources, found ${names.length}`));
  }
  return problems;
}

function problemsOf(issue: SchemaIssue, positions: Positions): Problem[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys
      .slice(0, PROBLEMS_MAX)
      .map((key) => problem(positions, [...issue.path, key], unknownKey(issue.path, key), true));
  }
  return [problem(positions, issue.path, issue.message)];
}

function unknownKey(at: readonly PropertyKey[], key: string): string {
  const inSource = at.length > 0;
  const names = inSource ? ['location', ...SOURCE_SETTINGS.map(keyOf)] : ['sources', ...SETTING_NAMES.map(keyOf)];
  const meant = nearest(key, names);
  if (meant !== undefined) return `unknown key; did you mean ${JSON.stringify(meant)}?`;
  if (inSource && SETTING_NAMES.some((name) => keyOf(name) === key)) {
    return `holds for the daemon, not for one source: it stands at the top of the file`;
  }
  return `unknown key; expected one of ${names.join(', ')}`;
}

/** A problem at a path, or at the key there. What is not in the file is told with the place of what should hold it. */
function problem(positions: Positions, path: readonly PropertyKey[], message: string, atKey = false): Problem {
  const at = placeOf(positions, path, atKey);
  // the location of `lake: rdma://…` has no key of its own
  const shown = at?.isScalar ? path.slice(0, at.depth) : path;
  return { path: pathText(shown), message, ...(at === undefined ? {} : { place: at.place }) };
}

export function pathText(path: readonly PropertyKey[]): string {
  return path.map((part) => (/^[\w.-]+$/.test(String(part)) ? String(part) : JSON.stringify(part))).join('.');
}

interface Found {
  readonly place: Place;
  /** How many parts of the path are there. */
  readonly depth: number;
  readonly isScalar: boolean;
}

/** The place of a path's value, or of as much of the path as there is; of the key where it is asked for. */
function placeOf({ root, placeAt }: Positions, path: readonly PropertyKey[], atKey = false): Found | undefined {
  let node: unknown = root;
  let offset = root?.range?.[0];
  let depth = 0;
  for (; depth < path.length && isMap(node); depth++) {
    const pair = node.items.find(({ key }) => String(isScalar(key) ? key.value : key) === String(path[depth]));
    if (pair === undefined) break;
    const [key, value] = [rangeStart(pair.key), rangeStart(pair.value)];
    const last = depth === path.length - 1;
    offset = (last && atKey ? key : (value ?? key)) ?? offset;
    node = pair.value;
  }
  if (offset === undefined) return undefined;
  return { place: placeAt(offset), depth, isScalar: isScalar(node) };
}

function rangeStart(node: unknown): number | undefined {
  return (node as Partial<Node> | null)?.range?.[0];
}
