/**
 * Names of columns as a person types them, to leaves of a file's schema. Exact names first; where there is none, the
 * same name in other letter case, if there is only one. A group stands for all leaves below it.
 */
import type { FileMetadata, LeafColumn, SchemaNode } from '../decode/index.ts';
import { FetchError } from './errors.ts';

/** The leaves in the order of `names`, each once; all in file order without names. Throws FetchError COLUMN. */
export function chooseColumns(metadata: FileMetadata, names: readonly string[] | undefined): readonly LeafColumn[] {
  if (names === undefined) return metadata.leaves;
  const byName = new Map<string, Set<LeafColumn>>();
  collect(metadata.root, byName);
  const byLowerCase = new Map<string, string[]>();
  for (const name of byName.keys()) {
    const lower = name.toLowerCase();
    const same = byLowerCase.get(lower);
    if (same === undefined) byLowerCase.set(lower, [name]);
    else same.push(name);
  }
  const chosen = new Set<LeafColumn>();
  for (const name of names) {
    let leaves = byName.get(name);
    if (leaves === undefined) {
      const [only, other] = byLowerCase.get(name.toLowerCase()) ?? [];
      if (other !== undefined) {
        throw new FetchError(
          'COLUMN',
          `column ${quote(name)} could be ${quote(only!)} or ${quote(other)}: write it as it is`,
        );
      }
      leaves = only === undefined ? undefined : byName.get(only);
    }
    if (leaves === undefined) throw unknownColumn(name, [...byName.keys()]);
    for (const leaf of leaves) chosen.add(leaf);
  }
  return [...chosen];
}

/** All leaves by their own dotted name and by that of each group above. Names may occur twice: they add up. */
function collect(root: SchemaNode, byName: Map<string, Set<LeafColumn>>): void {
  const open: { node: SchemaNode; above: string[] }[] = root.children.map((node) => ({ node, above: [] })).reverse();
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { node, above } = next;
    const names = [...above, above.length === 0 ? node.name : `${above.at(-1)}.${node.name}`];
    if (node.leaf !== undefined) for (const name of names) addLeaf(byName, name, node.leaf);
    for (const child of node.children.toReversed()) open.push({ node: child, above: names });
  }
}

function addLeaf(byName: Map<string, Set<LeafColumn>>, name: string, leaf: LeafColumn): void {
  const leaves = byName.get(name);
  if (leaves === undefined) byName.set(name, new Set([leaf]));
  else leaves.add(leaf);
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
