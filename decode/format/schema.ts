/**
 * The schema: from the footer's flat list of elements (a tree in depth-first order, each group with its number of
 * children) to a tree, and to its leaves with their levels (Dremel: definition level + 1 for each optional or
 * repeated field on the path, repetition level + 1 for each repeated one). The list is checked while it is used: every
 * child must exist, every element must be consumed, nesting is bounded, and nothing recurses.
 */
import { DecodeError } from '../errors.ts';
import type { CompactReader } from './compact.ts';
import { Wire } from './compact.ts';
import { nameOf, Physical, Repetition } from './enums.ts';
import { SCHEMA_DEPTH_MAX, SCHEMA_ELEMENTS_MAX, SCHEMA_PATHS_MAX } from './limits.ts';
import { fromConverted, misfit, parseLogicalType } from './logical-type.ts';
import type { LeafColumn, LogicalType, SchemaElement, SchemaNode } from './metadata.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export interface Schema {
  readonly root: SchemaNode;
  readonly leaves: readonly LeafColumn[];
  /** Why a leaf can't be read although the file can: by leaf index, undefined for good ones. */
  readonly broken: ReadonlyArray<string | undefined>;
}

/** Reads the list of SchemaElement structs; the reader stands at the list's header. */
export function parseSchemaElements(r: CompactReader, wire: number): SchemaElement[] {
  const size = r.list(wire, Wire.STRUCT);
  if (size > SCHEMA_ELEMENTS_MAX) {
    throw new DecodeError('LIMIT', `the schema has ${size} elements`, { expected: `at most ${SCHEMA_ELEMENTS_MAX}` });
  }
  const elements: SchemaElement[] = [];
  for (let i = 0; i < size; i++) elements.push(parseElement(r));
  return elements;
}

function parseElement(r: CompactReader): SchemaElement {
  const element: Mutable<SchemaElement> = { name: '' };
  let named = false;
  for (let last = 0; ; ) {
    const wire = r.field(last);
    if (wire === Wire.STOP) break;
    last = r.id;
    switch (last) {
      case 1:
        element.type = r.i32(wire);
        break;
      case 2:
        element.typeLength = r.i32(wire);
        break;
      case 3: {
        const repetition = r.i32(wire);
        if (repetition !== 0 && repetition !== 1 && repetition !== 2) {
          throw new DecodeError('SCHEMA', `repetition ${repetition} does not exist`);
        }
        element.repetition = repetition;
        break;
      }
      case 4:
        element.name = r.string(wire);
        named = true;
        break;
      case 5:
        element.numChildren = r.i32(wire);
        break;
      case 6:
        element.convertedType = r.i32(wire);
        break;
      case 7:
        element.scale = r.i32(wire);
        break;
      case 8:
        element.precision = r.i32(wire);
        break;
      case 9:
        element.fieldId = r.i32(wire);
        break;
      case 10:
        if (wire === Wire.STRUCT) {
          const logical = parseLogicalType(r);
          if (logical !== undefined) element.logicalType = logical;
        } else r.skip(wire);
        break;
      default:
        r.skip(wire);
    }
  }
  if (!named) r.fail('a schema element has no name');
  return element;
}

/** A group whose children are being read. */
interface OpenGroup {
  readonly node: Mutable<SchemaNode>;
  readonly children: SchemaNode[];
  left: number;
  readonly definition: number;
  readonly repetition: number;
}

/** Makes the tree and its leaves from the list of elements, or throws SCHEMA. */
export function buildSchema(elements: readonly SchemaElement[]): Schema {
  const first = elements[0];
  if (first === undefined) throw new DecodeError('SCHEMA', 'the schema is empty', { expected: 'a root element' });
  const rootChildren: SchemaNode[] = [];
  const root: Mutable<SchemaNode> = {
    name: first.name,
    path: [],
    repetition: Repetition.REQUIRED,
    children: rootChildren,
  };
  const leaves: LeafColumn[] = [];
  const broken: (string | undefined)[] = [];
  const open: OpenGroup[] = [
    { node: root, children: rootChildren, left: childCount(first, elements.length - 1), definition: 0, repetition: 0 },
  ];
  let pathsSize = 0;
  let next = 1;
  for (;;) {
    const group = open.at(-1);
    if (group === undefined) break;
    if (group.left === 0) {
      open.pop();
      continue;
    }
    group.left--;
    const element = elements[next++];
    if (element === undefined) {
      throw new DecodeError('SCHEMA', 'the schema list ends inside a group', {
        expected: 'as many children as it says',
      });
    }
    const repetition = element.repetition ?? Repetition.REQUIRED;
    const path = [...group.node.path, element.name];
    pathsSize += path.length;
    const node: Mutable<SchemaNode> = { name: element.name, path, repetition, children: [] };
    group.children.push(node);
    const definition = group.definition + (repetition === Repetition.REQUIRED ? 0 : 1);
    const repeated = group.repetition + (repetition === Repetition.REPEATED ? 1 : 0);
    if (isGroup(element)) {
      if (open.length >= SCHEMA_DEPTH_MAX) {
        throw new DecodeError('LIMIT', 'the schema is nested too deep', {
          expected: `at most ${SCHEMA_DEPTH_MAX} levels`,
        });
      }
      const logical = groupAnnotation(element);
      if (logical !== undefined) node.logicalType = logical;
      const children: SchemaNode[] = [];
      node.children = children;
      open.push({
        node,
        children,
        left: childCount(element, elements.length - next),
        definition,
        repetition: repeated,
      });
    } else {
      const leaf = makeLeaf(element, leaves.length, path, definition, repeated, repetition);
      pathsSize += leaf.column.name.length;
      node.leaf = leaf.column;
      if (leaf.column.logicalType !== undefined) node.logicalType = leaf.column.logicalType;
      leaves.push(leaf.column);
      broken.push(leaf.broken);
    }
    if (pathsSize > SCHEMA_PATHS_MAX) {
      throw new DecodeError('LIMIT', 'the schema has too many long paths', { expected: `at most ${SCHEMA_PATHS_MAX}` });
    }
  }
  if (next !== elements.length) {
    throw new DecodeError('SCHEMA', `${elements.length - next} schema elements belong to no group`);
  }
  return { root, leaves, broken };
}

/** A group has children; without any it is one when it has no physical type (structs without fields exist). */
function isGroup(element: SchemaElement): boolean {
  return element.type === undefined || (element.numChildren ?? 0) > 0;
}

function childCount(element: SchemaElement, left: number): number {
  const count = element.numChildren ?? 0;
  if (count < 0 || count > left) {
    throw new DecodeError('SCHEMA', `group ${JSON.stringify(element.name)} says it has ${count} children`, {
      expected: `at most the ${left} elements that follow`,
    });
  }
  return count;
}

function groupAnnotation(element: SchemaElement): LogicalType | undefined {
  if (element.logicalType !== undefined) return element.logicalType;
  return element.convertedType === undefined ? undefined : fromConverted(element.convertedType);
}

function makeLeaf(
  element: SchemaElement,
  index: number,
  path: readonly string[],
  maxDefinitionLevel: number,
  maxRepetitionLevel: number,
  repetition: Repetition,
): { column: LeafColumn; broken: string | undefined } {
  const type = element.type ?? -1;
  const fixed = type === Physical.FIXED_LEN_BYTE_ARRAY;
  const typeLength = fixed ? (element.typeLength ?? 0) : 0;
  const column: Mutable<LeafColumn> = {
    index,
    path,
    name: path.length === 1 ? path[0]! : path.join('.'),
    type,
    typeLength,
    maxDefinitionLevel,
    maxRepetitionLevel,
    repetition,
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
  if (annotation === undefined) return { column, broken: undefined };
  const why = misfit(annotation, type, typeLength);
  if (why === undefined) column.logicalType = annotation;
  else if (converted !== undefined && misfit(converted, type, typeLength) === undefined) column.logicalType = converted;
  else if (!isLabel(annotation)) return { column, broken: why };
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
