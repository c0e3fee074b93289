/**
 * The Arrow schema that Arrow's writers leave in a file's key-values (`ARROW:schema`: an IPC schema message in base64)
 * as far as it tells what Parquet's types can't: names of time zones, durations, dates in milliseconds. Reads the
 * flatbuffers of the fields that are asked for and of no others, with every offset checked: the bytes are anyone's. What
 * is not well formed, or not of this file's columns, is no hint. Flatbuffers: a table is an offset back to its vtable
 * and fields; the vtable has u16 size of itself, u16 size of the table, and a u16 place for each field, 0 for none.
 * Field numbers and enumerations as in Arrow's Message.fbs and Schema.fbs.
 */
import { HINT_CHARACTERS_MAX, NAME_BYTES_MAX, ZONE_BYTES_MAX } from './limits.ts';

export type HintUnit = 'second' | 'millisecond' | 'microsecond' | 'nanosecond';

/** What a field's Arrow type was, where it may refine the type that Parquet tells. */
export type TypeHint =
  | { readonly kind: 'timestamp'; readonly zone: string }
  | { readonly kind: 'duration'; readonly unit: HintUnit }
  | { readonly kind: 'date64' };

const UNITS: readonly HintUnit[] = ['second', 'millisecond', 'microsecond', 'nanosecond'];

const MESSAGE = { headerType: 1, header: 2 } as const;
const SCHEMA_HEADER = 1;
const SCHEMA = { fields: 1 } as const;
const FIELD = { name: 0, typeKind: 2, type: 3, dictionary: 4, children: 5 } as const;
const TYPE = { date: 8, timestamp: 10, duration: 18 } as const;

/** Thrown inside of this file when an offset leaves the bytes. */
class Malformed extends Error {}

export class HintField {
  readonly #bytes: DataView;
  /** Position of the Field table, or of the Schema table for the root. */
  readonly #at: number;
  readonly #fields: number;
  #places: Map<string, number> | undefined;

  private constructor(bytes: DataView, at: number, fields: number) {
    this.#bytes = bytes;
    this.#at = at;
    this.#fields = fields;
  }

  /** The root of the schema in a file's key-values: a field without a type. */
  static ofFile(keyValues: ReadonlyArray<readonly [string, string | undefined]>): HintField | undefined {
    const text = keyValues.find(([key]) => key === 'ARROW:schema')?.[1];
    if (text === undefined || text.length > HINT_CHARACTERS_MAX) return undefined;
    const message = Buffer.from(text, 'base64');
    return guarded(() => {
      let view = new DataView(message.buffer, message.byteOffset, message.byteLength);
      // a continuation mark (not there in old files) and the message's length come first
      const start = uint32(view, 0) === 0xffffffff ? 8 : 4;
      if (start > view.byteLength) throw new Malformed();
      view = new DataView(message.buffer, message.byteOffset + start, message.byteLength - start);
      const root = uint32(view, 0);
      if (uint8Of(view, root, MESSAGE.headerType) !== SCHEMA_HEADER) return undefined;
      return new HintField(view, target(view, root, MESSAGE.header), SCHEMA.fields);
    });
  }

  /** The child of this name, tried at `place` first; undefined when there is none, or more than one. */
  child(name: string, place = 0): HintField | undefined {
    return guarded(() => {
      const fields = vectorOf(this.#bytes, this.#at, this.#fields);
      if (place < fields.length && this.#name(fields, place) === name) return this.#childAt(fields, place);
      this.#places ??= guarded(() => this.#allPlaces(fields)) ?? new Map();
      const found = this.#places.get(name) ?? -1;
      return found < 0 ? undefined : this.#childAt(fields, found);
    });
  }

  /** The child at a place, whatever its name: of lists and maps, whose names differ from Parquet's. */
  childAt(place: number): HintField | undefined {
    return guarded(() => {
      const fields = vectorOf(this.#bytes, this.#at, this.#fields);
      return place < fields.length ? this.#childAt(fields, place) : undefined;
    });
  }

  #childAt(fields: Vector, place: number): HintField {
    return new HintField(this.#bytes, indirect(this.#bytes, fields.start + 4 * place), FIELD.children);
  }

  /** By name, -1 for one that occurs twice. Empty when the names are longer than the schema, as shared ones can be. */
  #allPlaces(fields: Vector): Map<string, number> {
    const places = new Map<string, number>();
    let left = this.#bytes.byteLength;
    for (let k = 0; k < fields.length; k++) {
      const name = this.#name(fields, k);
      left -= name.length;
      if (left < 0) return new Map();
      places.set(name, places.has(name) ? -1 : k);
    }
    return places;
  }

  #name(fields: Vector, place: number): string {
    const table = indirect(this.#bytes, fields.start + 4 * place);
    const { name } = FIELD;
    return fieldAt(this.#bytes, table, name) === 0 ? '' : textAt(this.#bytes, target(this.#bytes, table, name));
  }

  /** Its type, where that may refine another. */
  type(): TypeHint | undefined {
    return guarded(() => {
      const { dictionary, type, typeKind } = FIELD;
      if (this.#fields !== FIELD.children || fieldAt(this.#bytes, this.#at, dictionary) !== 0) return undefined;
      switch (uint8Of(this.#bytes, this.#at, typeKind)) {
        case TYPE.timestamp: {
          const table = target(this.#bytes, this.#at, type);
          if (fieldAt(this.#bytes, table, 1) === 0) return undefined;
          const zone = zoneAt(this.#bytes, target(this.#bytes, table, 1));
          return zone === undefined ? undefined : { kind: 'timestamp', zone };
        }
        case TYPE.duration: {
          const unit = UNITS[int16Of(this.#bytes, target(this.#bytes, this.#at, type), 0, 1)];
          return unit === undefined ? undefined : { kind: 'duration', unit };
        }
        case TYPE.date: {
          const isMilliseconds = int16Of(this.#bytes, target(this.#bytes, this.#at, type), 0, 1) === 1;
          return isMilliseconds ? { kind: 'date64' } : undefined;
        }
        default:
          return undefined;
      }
    });
  }
}

function guarded<T>(read: () => T | undefined): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof Malformed) return undefined;
    throw error;
  }
}

interface Vector {
  readonly start: number;
  readonly length: number;
}

function check(bytes: DataView, at: number, size: number): void {
  if (at < 0 || at + size > bytes.byteLength) throw new Malformed();
}

function uint32(bytes: DataView, at: number): number {
  check(bytes, at, 4);
  return bytes.getUint32(at, true);
}

function uint16(bytes: DataView, at: number): number {
  check(bytes, at, 2);
  return bytes.getUint16(at, true);
}

/** Position of a table's field, or 0 when it has its default. */
function fieldAt(bytes: DataView, table: number, field: number): number {
  check(bytes, table, 4);
  const vtable = table - bytes.getInt32(table, true);
  const size = uint16(bytes, vtable);
  if (4 + 2 * field + 2 > size) return 0;
  const place = uint16(bytes, vtable + 4 + 2 * field);
  return place === 0 ? 0 : table + place;
}

/** Where the offset at `at` leads. */
function indirect(bytes: DataView, at: number): number {
  return at + uint32(bytes, at);
}

/** Position of the table, vector or string in a field that must be there. */
function target(bytes: DataView, table: number, field: number): number {
  const at = fieldAt(bytes, table, field);
  if (at === 0) throw new Malformed();
  return indirect(bytes, at);
}

function uint8Of(bytes: DataView, table: number, field: number): number {
  const at = fieldAt(bytes, table, field);
  if (at === 0) return 0;
  check(bytes, at, 1);
  return bytes.getUint8(at);
}

function int16Of(bytes: DataView, table: number, field: number, otherwise: number): number {
  const at = fieldAt(bytes, table, field);
  return at === 0 ? otherwise : uint16(bytes, at);
}

/** A vector of offsets. */
function vectorOf(bytes: DataView, table: number, field: number): Vector {
  const at = fieldAt(bytes, table, field);
  if (at === 0) return { start: 0, length: 0 };
  const start = indirect(bytes, at);
  const length = uint32(bytes, start);
  check(bytes, start + 4, 4 * length);
  return { start: start + 4, length };
}

function textAt(bytes: DataView, at: number): string {
  const length = uint32(bytes, at);
  check(bytes, at + 4, length);
  if (length > NAME_BYTES_MAX) throw new Malformed();
  return Buffer.from(bytes.buffer, bytes.byteOffset + at + 4, length).toString('utf8');
}

/** The name of a time zone; undefined for what can't be one. */
function zoneAt(bytes: DataView, at: number): string | undefined {
  const length = uint32(bytes, at);
  check(bytes, at + 4, length);
  if (length > ZONE_BYTES_MAX) return undefined;
  const zone = Buffer.from(bytes.buffer, bytes.byteOffset + at + 4, length).toString('latin1');
  return /^[A-Za-z0-9+\-_/:]+$/.test(zone) ? zone : undefined;
}
