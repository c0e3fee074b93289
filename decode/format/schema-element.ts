/**
 * One element of the footer's schema list (parquet.thrift, SchemaElement). Reading and checking is one thing, making an
 * object of it another: wide tables have every element checked and few of them made.
 */
import { DecodeError } from '../errors.ts';
import type { CompactReader } from './compact.ts';
import { Wire } from './compact.ts';
import type { Repetition } from './enums.ts';
import { parseLogicalType } from './logical-type.ts';
import type { LogicalType, SchemaElement } from './metadata.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** The raw fields of one element; one object serves all. */
export interface RawElement {
  type: number | undefined;
  typeLength: number | undefined;
  repetition: Repetition | undefined;
  /** Where its name stands. */
  nameAt: number;
  numChildren: number | undefined;
  convertedType: number | undefined;
  scale: number | undefined;
  precision: number | undefined;
  fieldId: number | undefined;
  logicalType: LogicalType | undefined;
}

export function emptyElement(): RawElement {
  return {
    type: undefined,
    typeLength: undefined,
    repetition: undefined,
    nameAt: -1,
    numChildren: undefined,
    convertedType: undefined,
    scale: undefined,
    precision: undefined,
    fieldId: undefined,
    logicalType: undefined,
  };
}

/** Reads a SchemaElement struct. Throws THRIFT and SCHEMA. */
export function readElement(r: CompactReader, into: RawElement): void {
  into.type = undefined;
  into.typeLength = undefined;
  into.repetition = undefined;
  into.nameAt = -1;
  into.numChildren = undefined;
  into.convertedType = undefined;
  into.scale = undefined;
  into.precision = undefined;
  into.fieldId = undefined;
  into.logicalType = undefined;
  for (let last = 0; ; ) {
    const wire = r.field(last);
    if (wire === Wire.STOP) break;
    last = r.id;
    switch (last) {
      case 1:
        into.type = r.i32(wire);
        break;
      case 2:
        into.typeLength = r.i32(wire);
        break;
      case 3:
        into.repetition = repetitionOf(r.i32(wire));
        break;
      case 4:
        into.nameAt = r.skipString(wire);
        break;
      case 5:
        into.numChildren = r.i32(wire);
        break;
      case 6:
        into.convertedType = r.i32(wire);
        break;
      case 7:
        into.scale = r.i32(wire);
        break;
      case 8:
        into.precision = r.i32(wire);
        break;
      case 9:
        into.fieldId = r.i32(wire);
        break;
      case 10:
        if (wire === Wire.STRUCT) into.logicalType = parseLogicalType(r);
        else r.skip(wire);
        break;
      default:
        r.skip(wire);
    }
  }
  if (into.nameAt < 0) r.fail('a schema element has no name');
}

function repetitionOf(value: number): Repetition {
  if (value !== 0 && value !== 1 && value !== 2) {
    throw new DecodeError('SCHEMA', `repetition ${value} does not exist`);
  }
  return value;
}

/** The element as plain data. */
export function elementOf(raw: RawElement, name: string): SchemaElement {
  const element: Mutable<SchemaElement> = { name };
  if (raw.type !== undefined) element.type = raw.type;
  if (raw.typeLength !== undefined) element.typeLength = raw.typeLength;
  if (raw.repetition !== undefined) element.repetition = raw.repetition;
  if (raw.numChildren !== undefined) element.numChildren = raw.numChildren;
  if (raw.convertedType !== undefined) element.convertedType = raw.convertedType;
  if (raw.scale !== undefined) element.scale = raw.scale;
  if (raw.precision !== undefined) element.precision = raw.precision;
  if (raw.fieldId !== undefined) element.fieldId = raw.fieldId;
  if (raw.logicalType !== undefined) element.logicalType = raw.logicalType;
  return element;
}

/** A group has children; without any it is one when it has no physical type (structs without fields exist). */
export function isGroup({ type, numChildren }: RawElement): boolean {
  return type === undefined || (numChildren ?? 0) > 0;
}
