/**
 * What a schema means: groups as structs, lists and maps, with the levels that tell them apart (parquet-format,
 * LogicalTypes.md, "Nested Types", its backward compatibility rules included). A field is made from the schema node
 * and the leaves that were chosen below it; groups without a chosen leaf are left out.
 */
import { DecodeError } from '../errors.ts';
import { Repetition } from './enums.ts';
import type { LeafColumn, LogicalType, SchemaNode } from './metadata.ts';

/** Levels of a group or list: see `NestedNode` in column/spec.ts. */
export interface FieldLevels {
  readonly repetition: number;
  readonly slot: number;
  readonly valid: number;
  readonly element: number;
}

interface Common {
  readonly name: string;
  readonly nullable: boolean;
  readonly logicalType?: LogicalType;
  /** The chosen leaves below, in file order. */
  readonly leaves: readonly LeafColumn[];
}

export interface LeafField extends Common {
  readonly kind: 'leaf';
  readonly leaf: LeafColumn;
  /** Definition level from which an entry is a slot of the leaf. */
  readonly slot: number;
}

export interface StructField extends Common {
  readonly kind: 'struct';
  readonly levels: FieldLevels;
  /** Structs and lists above it. */
  readonly depth: number;
  readonly children: readonly Field[];
}

export interface ListField extends Common {
  readonly kind: 'list';
  readonly levels: FieldLevels;
  readonly depth: number;
  readonly element: Field;
}

export interface MapField extends Common {
  readonly kind: 'map';
  readonly levels: FieldLevels;
  readonly depth: number;
  readonly key: Field;
  /** Absent for maps without values, which are sets. */
  readonly value?: Field;
}

export type Field = LeafField | StructField | ListField | MapField;

/** The fields of a file's root that hold the chosen leaves, in file order. Throws SCHEMA, LIMIT. */
export function buildFields(root: SchemaNode, leaves: readonly LeafColumn[]): Field[] {
  const chosen = Uint32Array.from(leaves, (leaf) => leaf.index).sort();
  const top = { repetition: 0, slot: 0, definition: 0, depth: 0 };
  return chosenChildren(root, chosen).flatMap((child) => field(child, top, chosen) ?? []);
}

/** Indexes of leaves, ascending. */
type Chosen = Uint32Array;

/** The children with a chosen leaf, found by halving: in wide groups most have none, and are not even made. */
function chosenChildren({ children, leafRange }: SchemaNode, chosen: Chosen): SchemaNode[] {
  const found: SchemaNode[] = [];
  for (let k = firstFrom(chosen, leafRange.start); k < chosen.length && chosen[k]! < leafRange.end; ) {
    const child = children[lastStartingBy(children, chosen[k]!)]!;
    found.push(child);
    k = firstFrom(chosen, child.leafRange.end);
  }
  return found;
}

/** Place of the first chosen leaf that is not before `leaf`. */
function firstFrom(chosen: Chosen, leaf: number): number {
  let low = 0;
  for (let high = chosen.length; low < high; ) {
    const middle = (low + high) >>> 1;
    if (chosen[middle]! < leaf) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The last child whose leaves start at `leaf` or before: the one that has it. */
function lastStartingBy(children: readonly SchemaNode[], leaf: number): number {
  let low = 0;
  for (let high = children.length - 1; low < high; ) {
    const middle = (low + high + 1) >>> 1;
    if (children[middle]!.leafRange.start > leaf) high = middle - 1;
    else low = middle;
  }
  return low;
}

function isChosen(chosen: Chosen, leaf: number): boolean {
  return chosen[firstFrom(chosen, leaf)] === leaf;
}

interface Place {
  /** Repetition level of the lists around it. */
  readonly repetition: number;
  /** Definition level from which its slot exists: that of an element of the innermost list. A null group has slots. */
  readonly slot: number;
  /** Definition level of what is around it. */
  readonly definition: number;
  readonly depth: number;
}

/** A field that nothing around it has taken for a list's or map's repeated middle. */
function field(node: SchemaNode, place: Place, chosen: Chosen): Field | undefined {
  if (node.repetition !== Repetition.REPEATED)
    return body(node, place, node.repetition === Repetition.OPTIONAL, chosen);
  const element = body(node, elementPlace(place, place.definition), false, chosen);
  if (element === undefined) return undefined;
  const { repetition, slot, definition } = place;
  const levels = { repetition, slot, valid: definition, element: definition + 1 };
  return {
    kind: 'list',
    name: node.name,
    nullable: false,
    leaves: element.leaves,
    levels,
    depth: place.depth,
    element,
  };
}

function elementPlace(place: Place, valid: number): Place {
  return { repetition: place.repetition + 1, slot: valid + 1, definition: valid + 1, depth: place.depth + 1 };
}

function body(node: SchemaNode, place: Place, nullable: boolean, chosen: Chosen): Field | undefined {
  const { name, leaf, logicalType } = node;
  const annotated = logicalType === undefined ? {} : { logicalType };
  if (leaf !== undefined) {
    if (!isChosen(chosen, leaf.index)) return undefined;
    return { kind: 'leaf', name, nullable, ...annotated, leaves: [leaf], leaf, slot: place.slot };
  }
  const valid = place.definition + (nullable ? 1 : 0);
  const { depth } = place;
  const only = node.children.length === 1 ? node.children[0]! : undefined;
  const middle = only?.repetition === Repetition.REPEATED ? only : undefined;
  const levels = { repetition: place.repetition, slot: place.slot, valid, element: valid + 1 };
  if (logicalType?.kind === 'LIST' && middle !== undefined) {
    const element = listElement(node, middle, elementPlace(place, valid), chosen);
    if (element === undefined) return undefined;
    return { kind: 'list', name, nullable, ...annotated, leaves: element.leaves, levels, depth, element };
  }
  const isMap = logicalType?.kind === 'MAP' || logicalType?.kind === 'MAP_KEY_VALUE';
  if (isMap && middle !== undefined && (middle.children.length === 1 || middle.children.length === 2)) {
    return map({ name, nullable, ...annotated }, middle, { levels, depth }, elementPlace(place, valid), chosen);
  }
  const inside = { ...place, definition: valid, depth: depth + 1 };
  const children = chosenChildren(node, chosen).flatMap((child) => field(child, inside, chosen) ?? []);
  if (children.length === 0) return undefined;
  const leaves = children.flatMap((child) => child.leaves);
  return { kind: 'struct', name, nullable, ...annotated, leaves, levels, depth, children };
}

/** Which of the repeated middle and its only child is the element. */
function listElement(list: SchemaNode, middle: SchemaNode, place: Place, chosen: Chosen): Field | undefined {
  const only = middle.children[0];
  const isElement =
    middle.leaf !== undefined ||
    only === undefined ||
    middle.children.length > 1 ||
    only.repetition === Repetition.REPEATED ||
    middle.name === 'array' ||
    middle.name === `${list.name}_tuple` ||
    middle.logicalType?.kind === 'LIST' ||
    middle.logicalType?.kind === 'MAP';
  return isElement ? body(middle, place, false, chosen) : field(only, place, chosen);
}

function map(
  common: { readonly name: string; readonly nullable: boolean; readonly logicalType?: LogicalType },
  middle: SchemaNode,
  own: { readonly levels: FieldLevels; readonly depth: number },
  place: Place,
  chosen: Chosen,
): Field | undefined {
  // in Arrow, and in a record, the pair is a struct of its own
  const inside = { ...place, depth: place.depth + 1 };
  const [keyNode, valueNode] = middle.children;
  const key = field(keyNode!, inside, chosen);
  const value = valueNode === undefined ? undefined : field(valueNode, inside, chosen);
  const leaves = [...(key?.leaves ?? []), ...(value?.leaves ?? [])];
  if (leaves.length === 0) return undefined;
  if (key !== undefined && (value !== undefined || valueNode === undefined)) {
    return { kind: 'map', ...common, leaves, ...own, key, ...(value === undefined ? {} : { value }) };
  }
  // a projection of one side only: pairs as structs of what was chosen
  const pair = { repetition: place.repetition, slot: place.slot, valid: place.slot, element: place.slot + 1 };
  const children = [key, value].flatMap((side) => side ?? []);
  const element: StructField = {
    kind: 'struct',
    name: middle.name,
    nullable: false,
    leaves,
    levels: pair,
    depth: place.depth,
    children,
  };
  return { kind: 'list', ...common, leaves, ...own, element };
}

/** The groups and lists above each leaf, from the outermost in. */
export function pathsOf(
  fields: readonly Field[],
): Map<number, { readonly above: readonly Above[]; readonly slot: number }> {
  const paths = new Map<number, { above: readonly Above[]; slot: number }>();
  const walk = (one: Field, above: readonly Above[]): void => {
    if (one.kind === 'leaf') {
      paths.set(one.leaf.index, { above, slot: one.slot });
      return;
    }
    if (one.depth !== above.length) throw new DecodeError('SCHEMA', `field ${one.name} at depth ${one.depth}`);
    if (one.kind === 'struct') {
      for (const child of one.children) walk(child, [...above, { kind: 'struct', ...one.levels }]);
      return;
    }
    const list: readonly Above[] = [...above, { kind: 'list', ...one.levels }];
    if (one.kind === 'list') {
      walk(one.element, list);
      return;
    }
    const slot = one.levels.element;
    const pair: Above = { kind: 'struct', repetition: one.levels.repetition + 1, slot, valid: slot, element: slot + 1 };
    walk(one.key, [...list, pair]);
    if (one.value !== undefined) walk(one.value, [...list, pair]);
  };
  for (const one of fields) walk(one, []);
  return paths;
}

export interface Above extends FieldLevels {
  readonly kind: 'struct' | 'list';
}
