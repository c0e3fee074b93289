/**
 * Nested values to columns: fields (leaves, structs, lists and maps in any of the forms that files have) become a
 * schema tree, and JavaScript values become levels and values of each leaf (the Dremel model; parquet-format,
 * "Nested Encoding", and LogicalTypes.md, "Lists" and "Maps").
 *
 * A struct's value is an object by its fields' names, a list's an array, a map's an array of [key, value] pairs (of
 * [key] where it has no values); null stands for what is null.
 */
import { Converted, Repetition } from '../../format/enums.ts';
import type { Tree, Value } from '../thrift-twin.ts';
import type { ChunkPlan, PagePlan } from './chunk.ts';
import type { ColumnValue, WriterColumn } from './value.ts';

export type NestedValue = ColumnValue | readonly NestedValue[] | { readonly [field: string]: NestedValue };

interface Named {
  readonly name: string;
  readonly optional: boolean;
}

export interface LeafPlan extends Named {
  readonly kind: 'leaf';
  readonly column: Omit<WriterColumn, 'name' | 'optional'>;
}

export interface StructPlan extends Named {
  readonly kind: 'struct';
  readonly fields: readonly FieldPlan[];
}

export interface ListPlan extends Named {
  readonly kind: 'list';
  readonly form:
    | 'three levels' // group (LIST) { repeated group { element } }
    | 'two levels' // group (LIST) { repeated element }: elements are never null
    | 'bare'; // repeated element: nor is the list
  /** What the repeated group of three levels is called; 'list' when absent. */
  readonly middle?: string;
  readonly element: FieldPlan;
}

export interface MapPlan extends Named {
  readonly kind: 'map';
  /** MAP_KEY_VALUE in the place of MAP, and around the pairs, as old writers have it. */
  readonly old?: boolean;
  readonly key: FieldPlan;
  /** Absent: a set. */
  readonly value?: FieldPlan;
}

export type FieldPlan = LeafPlan | StructPlan | ListPlan | MapPlan;

/** A node of the schema. The values of a group are its children's, in order; those of a repeated node are an array. */
interface Node {
  readonly name: string;
  readonly repetition: number;
  readonly converted?: number;
  readonly logicalType?: Tree;
  readonly children?: readonly Node[];
  readonly column?: LeafPlan['column'];
}
type Raw = ColumnValue | readonly Raw[];

/** The leaf's levels and values of all rows. */
export interface LeafColumn {
  readonly path: readonly string[];
  readonly column: WriterColumn;
  readonly maxRepetition: number;
  readonly maxDefinition: number;
  readonly repetition: number[];
  readonly definition: number[];
  /** A value or null for each entry. */
  readonly values: ColumnValue[];
}

/** Elements of the footer's schema list, without the root. */
export function schemaElements(fields: readonly FieldPlan[]): Tree[] {
  return fields.flatMap((field) => elementsOf(nodeOf(field)));
}

/** Columns of all leaves, in the order of the schema; `rows` holds a value for each field. */
export function shred(fields: readonly FieldPlan[], rows: ReadonlyArray<readonly NestedValue[]>): LeafColumn[] {
  const shredders = fields.map((field) => new Shredder(nodeOf(field)));
  for (const row of rows) for (const [i, field] of fields.entries()) shredders[i]!.add(rawOf(field, row[i]!));
  return shredders.flatMap((shredder) => shredder.leaves);
}

export function chunkPlan(leaf: LeafColumn, pages: readonly PagePlan[], codec: number): ChunkPlan {
  const { path, column, maxRepetition, maxDefinition, repetition, definition, values } = leaf;
  return { column, values, nested: { path, maxRepetition, maxDefinition, repetition, definition }, pages, codec };
}

function nodeOf(field: FieldPlan, repetition?: number): Node {
  const { name } = field;
  const own = { name, repetition: repetition ?? (field.optional ? Repetition.OPTIONAL : Repetition.REQUIRED) };
  switch (field.kind) {
    case 'leaf':
      return { ...own, column: field.column };
    case 'struct':
      return { ...own, children: field.fields.map((child) => nodeOf(child)) };
    case 'list': {
      const { element, form, middle = 'list' } = field;
      if (form === 'bare') return { ...nodeOf(element, Repetition.REPEATED), name };
      const annotation = { converted: Converted.LIST, logicalType: { LIST: {} } };
      if (form === 'two levels') return { ...own, ...annotation, children: [nodeOf(element, Repetition.REPEATED)] };
      const repeated = { name: middle, repetition: Repetition.REPEATED, children: [nodeOf(element)] };
      return { ...own, ...annotation, children: [repeated] };
    }
    case 'map': {
      const { key, value, old } = field;
      const children = [nodeOf(key), ...(value === undefined ? [] : [nodeOf(value)])];
      const pair: Node = { name: old ? 'map' : 'key_value', repetition: Repetition.REPEATED, children };
      if (!old) return { ...own, converted: Converted.MAP, logicalType: { MAP: {} }, children: [pair] };
      return {
        ...own,
        converted: Converted.MAP_KEY_VALUE,
        children: [{ ...pair, converted: Converted.MAP_KEY_VALUE }],
      };
    }
  }
}

function rawOf(field: FieldPlan, value: NestedValue): Raw {
  if (value === null || field.kind === 'leaf') return value as ColumnValue;
  switch (field.kind) {
    case 'struct': {
      const struct = value as { readonly [name: string]: NestedValue };
      return field.fields.map((child) => rawOf(child, struct[child.name]!));
    }
    case 'list': {
      const elements = (value as readonly NestedValue[]).map((element) => rawOf(field.element, element));
      if (field.form === 'bare') return elements;
      return [field.form === 'two levels' ? elements : elements.map((element) => [element])];
    }
    case 'map':
      return [
        (value as ReadonlyArray<readonly NestedValue[]>).map(([key, mapped]) =>
          field.value === undefined
            ? [rawOf(field.key, key!)]
            : [rawOf(field.key, key!), rawOf(field.value, mapped ?? null)],
        ),
      ];
  }
}

function elementsOf(node: Node): Tree[] {
  const { name, repetition, converted, logicalType, children, column } = node;
  const element: Tree = { name, repetition_type: repetition };
  if (children !== undefined) element.num_children = children.length;
  if (column !== undefined) element.type = column.physical;
  if (column?.typeLength !== undefined) element.type_length = column.typeLength;
  const ownConverted = column === undefined ? converted : column.converted;
  const ownLogical = column === undefined ? logicalType : (column.logicalType as Value | undefined);
  if (ownConverted !== undefined) element.converted_type = ownConverted;
  if (ownLogical !== undefined) element.logicalType = ownLogical;
  return [element, ...(children ?? []).flatMap(elementsOf)];
}

/** A node with its maximum levels and the columns of the leaves below it. */
interface Placed {
  readonly node: Node;
  readonly maxRepetition: number;
  readonly children: readonly Placed[];
  readonly leaves: readonly LeafColumn[];
}

class Shredder {
  readonly #root: Placed;

  constructor(node: Node) {
    this.#root = place(node, [], 0, 0);
  }

  get leaves(): readonly LeafColumn[] {
    return this.#root.leaves;
  }

  add(value: Raw): void {
    this.#add(this.#root, value, 0, 0);
  }

  #add(placed: Placed, value: Raw, repetition: number, definition: number): void {
    if (placed.node.repetition === Repetition.REQUIRED) {
      this.#content(placed, value, repetition, definition);
    } else if (placed.node.repetition === Repetition.OPTIONAL) {
      if (value === null) this.#nothing(placed, repetition, definition);
      else this.#content(placed, value, repetition, definition + 1);
    } else {
      const values = value as readonly Raw[];
      if (values.length === 0) this.#nothing(placed, repetition, definition);
      for (let i = 0; i < values.length; i++) {
        this.#content(placed, values[i]!, i === 0 ? repetition : placed.maxRepetition, definition + 1);
      }
    }
  }

  #content(placed: Placed, value: Raw, repetition: number, definition: number): void {
    if (placed.node.column === undefined) {
      const values = value as readonly Raw[];
      for (let i = 0; i < placed.children.length; i++)
        this.#add(placed.children[i]!, values[i]!, repetition, definition);
    } else this.#entry(placed.leaves[0]!, repetition, definition, value as ColumnValue);
  }

  #nothing(placed: Placed, repetition: number, definition: number): void {
    for (const leaf of placed.leaves) this.#entry(leaf, repetition, definition, null);
  }

  #entry(leaf: LeafColumn, repetition: number, definition: number, value: ColumnValue): void {
    leaf.repetition.push(repetition);
    leaf.definition.push(definition);
    leaf.values.push(value);
  }
}

function place(node: Node, above: readonly string[], repetition: number, definition: number): Placed {
  const path = [...above, node.name];
  const maxRepetition = repetition + (node.repetition === Repetition.REPEATED ? 1 : 0);
  const maxDefinition = definition + (node.repetition === Repetition.REQUIRED ? 0 : 1);
  if (node.column === undefined) {
    const children = node.children!.map((child) => place(child, path, maxRepetition, maxDefinition));
    return { node, maxRepetition, children, leaves: children.flatMap((child) => child.leaves) };
  }
  const column = { ...node.column, name: path.join('.') };
  const leaf = { path, column, maxRepetition, maxDefinition, repetition: [], definition: [], values: [] };
  return { node, maxRepetition, children: [], leaves: [leaf] };
}
