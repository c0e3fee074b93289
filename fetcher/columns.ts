/**
 * Names of columns as a person types them, to leaves of a file's schema. Exact names first; where there is none, the
 * same name in other letter case, if there is only one. A group stands for all leaves below it.
 */
import type { FileMetadata, LeafColumn, SchemaNode } from '../decode/index.ts';
import { FetchError } from './errors.ts';

/** Names looked up one by one: for more, it is cheaper to make all names of a file once. */
const LOOKED_UP_MAX = 64;

/** The leaves in the order of `names`, each once; all in file order without names. Throws FetchError COLUMN. */
export function chooseColumns(metadata: FileMetadata, names: readonly string[] | undefined): readonly LeafColumn[] {
  if (names === undefined) return metadata.leaves;
  const chosen = new Set<number>();
  let all: KnownNames | undefined;
  for (const name of names) {
    let nodes: readonly SchemaNode[] = names.length > LOOKED_UP_MAX ? [] : find(metadata.root, name);
    if (nodes.every(isEmpty)) {
      all ??= new KnownNames(metadata.root);
      nodes = all.find(name);
    }
    for (const { leafRange } of nodes) for (let leaf = leafRange.start; leaf < leafRange.end; leaf++) chosen.add(leaf);
  }
  return Array.from(chosen, (leaf) => metadata.leaves[leaf]!);
}

const isEmpty = ({ leafRange }: SchemaNode): boolean => leafRange.start === leafRange.end;

/** The nodes of this dotted name in file order; names may hold dots themselves, and occur twice: they add up. */
function find(group: SchemaNode, name: string): SchemaNode[] {
  const named = (segment: string): readonly SchemaNode[] =>
    group.named?.(segment) ?? group.children.filter((child) => child.name === segment);
  const found: SchemaNode[] = [];
  for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) {
    for (const child of named(name.slice(0, dot))) found.push(...find(child, name.slice(dot + 1)));
  }
  found.push(...named(name));
  return found.sort((a, b) => a.leafRange.start - b.leafRange.start);
}

/** All names of a file, of leaves and of the groups above them. */
class KnownNames {
  readonly #byName = new Map<string, SchemaNode[]>();
  #byLowerCase: Map<string, string[]> | undefined;

  constructor(root: SchemaNode) {
    const open: { node: SchemaNode; above: string }[] = [];
    const openChildren = ({ children }: SchemaNode, above: string): void => {
      for (let k = children.length - 1; k >= 0; k--) open.push({ node: children[k]!, above });
    };
    openChildren(root, '');
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const name = next.above + next.node.name;
      if (!isEmpty(next.node)) this.#add(name, next.node);
      openChildren(next.node, `${name}.`);
    }
  }

  #add(name: string, node: SchemaNode): void {
    const nodes = this.#byName.get(name);
    if (nodes === undefined) this.#byName.set(name, [node]);
    else nodes.push(node);
  }

  /** The nodes of this name, or of the only one like it in other letter case. Throws FetchError COLUMN. */
  find(name: string): readonly SchemaNode[] {
    const exact = this.#byName.get(name);
    if (exact !== undefined) return exact;
    this.#byLowerCase ??= this.#lowerCase();
    const [only, other] = this.#byLowerCase.get(name.toLowerCase()) ?? [];
    if (only === undefined) throw unknownColumn(name, [...this.#byName.keys()]);
    if (other === undefined) return this.#byName.get(only)!;
    throw new FetchError(
      'COLUMN',
      `column ${quote(name)} could be ${quote(only)} or ${quote(other)}: write it as it is`,
    );
  }

  #lowerCase(): Map<string, string[]> {
    const byLowerCase = new Map<string, string[]>();
    for (const name of this.#byName.keys()) {
      const lower = name.toLowerCase();
      const same = byLowerCase.get(lower);
      if (same === undefined) byLowerCase.set(lower, [name]);
      else same.push(name);
    }
    return byLowerCase;
  }
}

/** Characters of the list of names that an error shows, and of one name in it. */
const LIST_CHARACTERS_MAX = 400;
const NAME_CHARACTERS_MAX = 80;
/** Names compared to find the nearest: tables of 100,000 columns must not make a typing error slow. */
const COMPARED_MAX = 20_000;
/** Characters of a name for each that may be wrong in it: another letter in a name of two is another name. */
const CHARACTERS_PER_EDIT = 3;

function unknownColumn(name: string, known: readonly string[]): FetchError {
  const limit = Math.floor(name.length / CHARACTERS_PER_EDIT);
  let nearest: string | undefined;
  let least = limit + 1;
  for (const candidate of known.slice(0, COMPARED_MAX)) {
    const edits = editDistance(name.toLowerCase(), candidate.toLowerCase(), least - 1);
    if (edits < least) {
      least = edits;
      nearest = candidate;
    }
  }
  const hint = nearest === undefined ? '' : `did you mean ${quote(nearest)}? `;
  return new FetchError('COLUMN', `no column ${quote(name)}; ${hint}${listOf(known)}`);
}

function listOf(known: readonly string[]): string {
  if (known.length === 0) return 'the file has no columns';
  let text = '';
  for (const [k, name] of known.entries()) {
    const shown = name.length > NAME_CHARACTERS_MAX ? quote(`${name.slice(0, NAME_CHARACTERS_MAX)}…`) : quote(name);
    if (text.length + shown.length > LIST_CHARACTERS_MAX) return `columns are ${text}, … (${known.length - k} more)`;
    text += k === 0 ? shown : `, ${shown}`;
  }
  return `columns are ${text}`;
}

/** Levenshtein distance, or limit + 1 when it is larger than the limit. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    let least = i;
    for (let j = 1; j <= b.length; j++) {
      const substituted = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      row[j] = Math.min(substituted, previous[j]! + 1, row[j - 1]! + 1);
      least = Math.min(least, row[j]!);
    }
    if (least > limit) return limit + 1;
    previous = row;
  }
  return Math.min(previous[b.length]!, limit + 1);
}

function quote(name: string): string {
  return JSON.stringify(name);
}
