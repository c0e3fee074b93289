/**
 * The schema as a tree and as its leaves. Nodes and leaves of wide tables are made when they are asked for, out of the
 * index that schema-index.ts made and checked, so that making them can't fail.
 */
import type { CompactReader } from './compact.ts';
import { Wire } from './compact.ts';
import { nameOf, Physical, Repetition } from './enums.ts';
import { lazyList } from './lazy-list.ts';
import { EAGER_ITEMS_MAX } from './limits.ts';
import { fromConverted, misfit } from './logical-type.ts';
import type { LeafColumn, LogicalType, SchemaElement, SchemaNode } from './metadata.ts';
import { elementOf, emptyElement, readElement } from './schema-element.ts';
import { indexSchema, type SchemaIndex } from './schema-index.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export class Schema {
  readonly elements: readonly SchemaElement[];
  readonly leaves: readonly LeafColumn[];
  readonly root: SchemaNode;
  readonly #index: SchemaIndex;
  readonly #reader: CompactReader;
  readonly #raw = emptyElement();
  /** Paths of groups, shared by what lies in them. */
  readonly #paths = new Map<number, readonly string[]>([[0, []]]);
  readonly #broken = new Map<number, string>();

  constructor(index: SchemaIndex, reader: CompactReader) {
    this.#index = index;
    this.#reader = reader;
    this.elements = lazyList(index.size, (i) => this.#element(i));
    this.leaves = lazyList(index.leaves.length, (leaf) => this.#leaf(leaf));
    this.root = this.#node(0);
  }

  /** Why a leaf can't be read although the file can; undefined for good ones. */
  brokenReason(leaf: LeafColumn): string | undefined {
    return this.#broken.get(leaf.index);
  }

  #element(i: number): SchemaElement {
    const r = this.#reader;
    r.pos = this.#index.at[i]!;
    readElement(r, this.#raw);
    return elementOf(this.#raw, this.#name(i));
  }

  #name(i: number): string {
    const r = this.#reader;
    r.pos = this.#index.nameAt[i]!;
    return r.string(Wire.BINARY);
  }

  #groupPath(i: number): readonly string[] {
    let path = this.#paths.get(i);
    if (path === undefined) {
      path = [...this.#groupPath(this.#index.parent[i]!), this.#name(i)];
      this.#paths.set(i, path);
    }
    return path;
  }

  #leaf(index: number): LeafColumn {
    const i = this.#index.leaves[index]!;
    const element = this.#element(i);
    const path = [...this.#groupPath(this.#index.parent[i]!), element.name];
    const { column, broken } = makeLeaf(element, {
      index,
      path,
      maxDefinitionLevel: this.#index.definition[i]!,
      maxRepetitionLevel: this.#index.repetition[i]!,
    });
    if (broken !== undefined) this.#broken.set(index, broken);
    return column;
  }

  #node(i: number): SchemaNode {
    const { next, leafStart, groups } = this.#index;
    const leafRange = { start: leafStart[i]!, end: leafStart[next[i]!]! };
    if (groups[i] === 0) {
      const leaf = this.leaves[leafRange.start]!;
      const { path, repetition, logicalType } = leaf;
      const node: Mutable<SchemaNode> = { name: path.at(-1)!, path, repetition, children: [], leaf, leafRange };
      if (logicalType !== undefined) node.logicalType = logicalType;
      return node;
    }
    const element = this.#element(i);
    const places = this.#children(i);
    const children = lazyList(places.length, (k) => this.#node(places[k]!));
    const isRoot = i === 0;
    const node: Mutable<SchemaNode> = {
      name: element.name,
      path: this.#groupPath(i),
      repetition: isRoot ? Repetition.REQUIRED : (element.repetition ?? Repetition.REQUIRED),
      children,
      leafRange,
    };
    const logical = isRoot ? undefined : groupAnnotation(element);
    if (logical !== undefined) node.logicalType = logical;
    if (places.length > EAGER_ITEMS_MAX) node.named = (name) => this.#named(places, children, name);
    return node;
  }

  /** The elements that are a group's children. */
  #children(i: number): Uint32Array {
    const { next } = this.#index;
    const end = next[i]!;
    let count = 0;
    for (let child = i + 1; child < end; child = next[child]!) count++;
    const places = new Uint32Array(count);
    for (let child = i + 1, k = 0; child < end; child = next[child]!) places[k++] = child;
    return places;
  }

  #named(places: Uint32Array, children: readonly SchemaNode[], name: string): SchemaNode[] {
    const r = this.#reader;
    const found: SchemaNode[] = [];
    for (let k = 0; k < places.length; k++) {
      r.pos = this.#index.nameAt[places[k]!]!;
      if (r.equalsText(name)) found.push(children[k]!);
    }
    return found;
  }
}

/** Reads the list of SchemaElement structs; the reader stands at the list's header. Throws THRIFT, SCHEMA, LIMIT. */
export function parseSchema(r: CompactReader, wire: number): Schema {
  return new Schema(indexSchema(r, wire), r.fork());
}

function groupAnnotation(element: SchemaElement): LogicalType | undefined {
  if (element.logicalType !== undefined) return element.logicalType;
  return element.convertedType === undefined ? undefined : fromConverted(element.convertedType);
}

function makeLeaf(
  element: SchemaElement,
  place: Pick<LeafColumn, 'index' | 'path' | 'maxDefinitionLevel' | 'maxRepetitionLevel'>,
): { column: LeafColumn; broken: string | undefined } {
  const type = element.type ?? -1;
  const fixed = type === Physical.FIXED_LEN_BYTE_ARRAY;
  const typeLength = fixed ? (element.typeLength ?? 0) : 0;
  const { path } = place;
  const column: Mutable<LeafColumn> = {
    ...place,
    name: path.length === 1 ? path[0]! : path.join('.'),
    type,
    typeLength,
    repetition: element.repetition ?? Repetition.REQUIRED,
  };
  if (type < Physical.BOOLEAN || type > Physical.FIXED_LEN_BYTE_ARRAY) {
    return { column, broken: `physical type ${type} does not exist` };
  }
  if (fixed && typeLength < 1) {
    return { column, broken: `FIXED_LEN_BYTE_ARRAY of length ${element.typeLength ?? 'unknown'}` };
  }
  const converted =
    element.convertedType === undefined
      ? undefined
      : fromConverted(element.convertedType, element.precision, element.scale);
  const logical = element.logicalType;
  const annotation = logical === undefined || logical.kind === 'UNKNOWN' ? (converted ?? logical) : logical;
  if (annotation === undefined) {
    if (element.convertedType !== undefined) column.note = `converted type ${element.convertedType} is not known`;
    return { column, broken: undefined };
  }
  const why = misfit(annotation, type, typeLength);
  if (why === undefined) column.logicalType = annotation;
  else if (converted !== undefined && misfit(converted, type, typeLength) === undefined) column.logicalType = converted;
  else if (!isLabel(annotation)) return { column, broken: why };
  else column.note = why;
  if (annotation.kind === 'UNKNOWN') column.note = `the logical type in field ${annotation.fieldId} is not known`;
  return { column, broken: undefined };
}

/** Annotations that only name what the bytes are: without them the physical value still reads as what it is. */
function isLabel(annotation: LogicalType): boolean {
  const { kind } = annotation;
  return !(kind === 'INTEGER' || kind === 'DATE' || kind === 'TIME' || kind === 'TIMESTAMP' || kind === 'DECIMAL');
}

/** Name for messages: `INT64`, `FIXED_LEN_BYTE_ARRAY(16)`. */
export function physicalName(column: LeafColumn): string {
  const name = nameOf(Physical, column.type);
  return column.type === Physical.FIXED_LEN_BYTE_ARRAY ? `${name}(${column.typeLength})` : name;
}
