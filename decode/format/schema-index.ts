/**
 * The footer's flat list of schema elements (a tree in depth-first order, each group with its number of children),
 * read and checked once: where each element is, what it lies in, and its levels (Dremel: definition level + 1 for each
 * optional or repeated field on the path, repetition level + 1 for each repeated one). Every child must exist, every
 * element must be consumed, nesting is bounded, and nothing recurses. 26 bytes for each element, whatever its name and
 * type: what is needed of it is made later, by schema.ts.
 */
import { DecodeError } from '../errors.ts';
import type { CompactReader } from './compact.ts';
import { Wire } from './compact.ts';
import { Repetition } from './enums.ts';
import { SCHEMA_DEPTH_MAX, SCHEMA_ELEMENTS_MAX, SCHEMA_PATHS_MAX } from './limits.ts';
import { emptyElement, isGroup, readElement } from './schema-element.ts';

/** By element, in the order of the list; the root is element 0. */
export interface SchemaIndex {
  readonly size: number;
  /** Position of its struct in the footer. */
  readonly at: Uint32Array;
  /** Position of its name. */
  readonly nameAt: Uint32Array;
  readonly parent: Uint32Array;
  /** The element after it and all below it. */
  readonly next: Uint32Array;
  /** Leaves before it: those below it are [leafStart of it, leafStart of its next); one more at the end for all. */
  readonly leafStart: Uint32Array;
  readonly definition: Uint8Array;
  readonly repetition: Uint8Array;
  /** 1 for groups. */
  readonly groups: Uint8Array;
  /** By leaf: its element. */
  readonly leaves: Uint32Array;
}

/** Groups whose children are being read, from the root in. */
class OpenGroups {
  depth = 0;
  readonly element = new Uint32Array(SCHEMA_DEPTH_MAX + 1);
  readonly left = new Uint32Array(SCHEMA_DEPTH_MAX + 1);
  /** Bytes of the dotted path, the dot after it included. */
  readonly pathBytes = new Float64Array(SCHEMA_DEPTH_MAX + 1);

  open(element: number, children: number, pathBytes: number): void {
    this.element[this.depth] = element;
    this.left[this.depth] = children;
    this.pathBytes[this.depth] = pathBytes;
    this.depth++;
  }
}

/** Reads the list of SchemaElement structs; the reader stands at the list's header. Throws THRIFT, SCHEMA, LIMIT. */
export function indexSchema(r: CompactReader, wire: number): SchemaIndex {
  const size = r.list(wire, Wire.STRUCT);
  if (size > SCHEMA_ELEMENTS_MAX) {
    throw new DecodeError('LIMIT', `the schema has ${size} elements`, { expected: `at most ${SCHEMA_ELEMENTS_MAX}` });
  }
  if (size === 0) throw new DecodeError('SCHEMA', 'the schema is empty', { expected: 'a root element' });
  const index = {
    size,
    at: new Uint32Array(size),
    nameAt: new Uint32Array(size),
    parent: new Uint32Array(size),
    next: new Uint32Array(size),
    leafStart: new Uint32Array(size + 1),
    definition: new Uint8Array(size),
    repetition: new Uint8Array(size),
    groups: new Uint8Array(size),
  };
  const raw = emptyElement();
  const open = new OpenGroups();
  let leaves = 0;
  let pathsSize = 0;
  for (let i = 0; i < size; i++) {
    index.at[i] = r.pos;
    index.leafStart[i] = leaves;
    readElement(r, raw);
    index.nameAt[i] = raw.nameAt;
    if (i === 0) {
      index.groups[0] = 1;
      open.open(0, childCount(r, raw.nameAt, raw.numChildren, size - 1), 0);
      closeFull(open, index.next, 1);
      continue;
    }
    const top = open.depth - 1;
    if (top < 0) throw new DecodeError('SCHEMA', `${size - i} schema elements belong to no group`);
    open.left[top]!--;
    const parent = open.element[top]!;
    index.parent[i] = parent;
    const kind = raw.repetition ?? Repetition.REQUIRED;
    index.definition[i] = index.definition[parent]! + (kind === Repetition.REQUIRED ? 0 : 1);
    index.repetition[i] = index.repetition[parent]! + (kind === Repetition.REPEATED ? 1 : 0);
    const pathBytes = open.pathBytes[top]! + nameBytes(r, raw.nameAt);
    pathsSize += open.depth;
    if (isGroup(raw)) {
      if (open.depth >= SCHEMA_DEPTH_MAX) {
        throw new DecodeError('LIMIT', 'the schema is nested too deep', {
          expected: `at most ${SCHEMA_DEPTH_MAX} levels`,
        });
      }
      index.groups[i] = 1;
      open.open(i, childCount(r, raw.nameAt, raw.numChildren, size - 1 - i), pathBytes + 1);
    } else {
      index.next[i] = i + 1;
      pathsSize += pathBytes;
      leaves++;
    }
    if (pathsSize > SCHEMA_PATHS_MAX) {
      throw new DecodeError('LIMIT', 'the schema has too many long paths', { expected: `at most ${SCHEMA_PATHS_MAX}` });
    }
    closeFull(open, index.next, i + 1);
  }
  if (open.depth > 0) {
    throw new DecodeError('SCHEMA', 'the schema list ends inside a group', { expected: 'as many children as it says' });
  }
  index.leafStart[size] = leaves;
  return { ...index, leaves: elementsOfLeaves(index.groups, leaves) };
}

function closeFull(open: OpenGroups, next: Uint32Array, end: number): void {
  while (open.depth > 0 && open.left[open.depth - 1] === 0) next[open.element[--open.depth]!] = end;
}

function elementsOfLeaves(groups: Uint8Array, count: number): Uint32Array {
  const elements = new Uint32Array(count);
  let leaf = 0;
  for (let i = 0; i < groups.length; i++) if (groups[i] === 0) elements[leaf++] = i;
  return elements;
}

function nameBytes(r: CompactReader, nameAt: number): number {
  const end = r.pos;
  r.pos = nameAt;
  r.skip(Wire.BINARY);
  const bytes = r.pos - nameAt;
  r.pos = end;
  return bytes;
}

function childCount(r: CompactReader, nameAt: number, numChildren: number | undefined, left: number): number {
  const count = numChildren ?? 0;
  if (count >= 0 && count <= left) return count;
  r.pos = nameAt;
  throw new DecodeError('SCHEMA', `group ${JSON.stringify(r.string(Wire.BINARY))} says it has ${count} children`, {
    expected: `at most the ${left} elements that follow`,
  });
}
