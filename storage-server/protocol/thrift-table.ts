/**
 * Thrift compact structures driven by field tables instead of generated code: a table says which field id is which
 * property of which type, `readStruct` and `writeStruct` walk it over thrift's own TCompactProtocol.
 *
 * Reading is for hostile bytes: lengths and counts are checked against the bytes that are left before anything is
 * allocated, nesting has a limit, unknown fields are skipped under the same checks, a known field of another type than
 * the table says is an error, a required field that is missing is an error. As in thrift, the last of two fields with
 * one id counts. Integers come as numbers; one that a number can't hold exactly is an error. It does not do maps
 * other than to skip them, nor uuids.
 */
import TCompactProtocol from 'thrift/lib/nodejs/lib/thrift/compact_protocol.js';
import { ProtocolError } from './errors.ts';
import { THRIFT_DEPTH_MAX } from './limits.ts';
import { viewOf } from './number.ts';
import { ThriftBytes } from './thrift-bytes.ts';

type Scalar = 'bool' | 'i8' | 'i16' | 'i32' | 'i64' | 'double' | 'binary' | 'string';

export type ThriftType =
  | { readonly kind: Scalar }
  | { readonly kind: 'list' | 'set'; readonly of: ThriftType }
  | { readonly kind: 'struct'; readonly table: StructTable };

export interface Field {
  readonly id: number;
  readonly type: ThriftType;
  readonly required: boolean;
}

export interface StructTable<F extends Record<string, Field> = Record<string, Field>> {
  readonly name: string;
  readonly fields: F;
  readonly byId: ReadonlyMap<number, readonly [property: string, field: Field]>;
  /** Fewest bytes that a value of it takes: what a list's count is checked against. */
  readonly bytesMin: number;
}

type ScalarValue<K> = K extends 'bool'
  ? boolean
  : K extends 'binary'
    ? Uint8Array
    : K extends 'string'
      ? string
      : number;

type ValueOf<T> = T extends { readonly kind: 'list' | 'set'; readonly of: infer E }
  ? ValueOf<E>[]
  : T extends { readonly kind: 'struct'; readonly table: StructTable<infer F> }
    ? FieldValues<F>
    : T extends { readonly kind: infer K }
      ? ScalarValue<K>
      : never;

type FieldValues<F extends Record<string, Field>> = {
  -readonly [P in keyof F as F[P]['required'] extends true ? P : never]: ValueOf<F[P]['type']>;
} & {
  -readonly [P in keyof F as F[P]['required'] extends true ? never : P]?: ValueOf<F[P]['type']>;
};

/** The TypeScript type of the values that a table describes. */
export type StructValue<T> = T extends StructTable<infer F> ? FieldValues<F> : never;

export const thriftBool = { kind: 'bool' } as const;
export const thriftI8 = { kind: 'i8' } as const;
export const thriftI16 = { kind: 'i16' } as const;
export const thriftI32 = { kind: 'i32' } as const;
export const thriftI64 = { kind: 'i64' } as const;
export const thriftDouble = { kind: 'double' } as const;
export const thriftBinary = { kind: 'binary' } as const;
export const thriftString = { kind: 'string' } as const;

export function thriftList<const T extends ThriftType>(of: T): { readonly kind: 'list'; readonly of: T } {
  return { kind: 'list', of };
}

export function thriftSet<const T extends ThriftType>(of: T): { readonly kind: 'set'; readonly of: T } {
  return { kind: 'set', of };
}

export function thriftStruct<T extends StructTable>(table: T): { readonly kind: 'struct'; readonly table: T } {
  return { kind: 'struct', table };
}

export function required<const T extends ThriftType>(id: number, type: T): { id: number; type: T; required: true } {
  return { id, type, required: true };
}

export function optional<const T extends ThriftType>(id: number, type: T): { id: number; type: T; required: false } {
  return { id, type, required: false };
}

export function structTable<const F extends Record<string, Field>>(name: string, fields: F): StructTable<F> {
  const byId = new Map<number, readonly [string, Field]>();
  let bytesMin = 1;
  for (const [property, field] of Object.entries(fields)) {
    byId.set(field.id, [property, field]);
    if (field.required) bytesMin += field.type.kind === 'bool' ? 1 : 1 + bytesMinOf(field.type);
  }
  return { name, fields, byId, bytesMin };
}

/** Numbers of thrift's types (`Thrift.Type`), as TCompactProtocol takes and gives them. */
const STOP = 0;
const TTYPE = {
  bool: 2,
  i8: 3,
  double: 4,
  i16: 6,
  i32: 8,
  i64: 10,
  binary: 11,
  string: 11,
  struct: 12,
  map: 13,
  set: 14,
  list: 15,
  uuid: 16,
} as const;

const INTEGER_BOUNDS = { i8: 2 ** 7, i16: 2 ** 15, i32: 2 ** 31, i64: 2 ** 53 } as const;

function bytesMinOf(type: ThriftType): number {
  if (type.kind === 'struct') return type.table.bytesMin;
  return type.kind === 'double' ? 8 : 1;
}

/** Encodes a value. Throws ProtocolError THRIFT if a required field is missing or a number is no exact integer. */
export function writeStruct<T extends StructTable>(table: T, value: StructValue<T>): Uint8Array {
  const bytes = new ThriftBytes();
  const protocol = new TCompactProtocol(bytes);
  writeFields(protocol, bytes, table, value as Record<string, unknown>);
  return bytes.taken();
}

function writeFields(
  protocol: TCompactProtocol,
  bytes: ThriftBytes,
  table: StructTable,
  value: Record<string, unknown>,
): void {
  protocol.writeStructBegin(table.name);
  for (const [id, [property, field]] of table.byId) {
    const item = value[property];
    if (item === undefined) {
      if (field.required) throw new ProtocolError('THRIFT', `${table.name}.${property} is missing`);
      continue;
    }
    protocol.writeFieldBegin(property, TTYPE[field.type.kind], id);
    writeValue(protocol, bytes, field.type, item, `${table.name}.${property}`);
    protocol.writeFieldEnd();
  }
  protocol.writeFieldStop();
  protocol.writeStructEnd();
}

function writeValue(
  protocol: TCompactProtocol,
  bytes: ThriftBytes,
  type: ThriftType,
  value: unknown,
  what: string,
): void {
  switch (type.kind) {
    case 'bool':
      protocol.writeBool(value === true);
      return;
    case 'i8':
      protocol.writeByte(integerIn(value, type.kind, what) & 0xff);
      return;
    case 'i16':
    case 'i32':
    case 'i64':
      // All three are zigzag varints. Not thrift's own, which makes a buffer for each: directories hold many.
      bytes.writeZigzag(integerIn(value, type.kind, what));
      return;
    case 'double': {
      // Bit by bit: thrift's own loses the sign of zero and the payload of NaN.
      const eight = new Uint8Array(8);
      viewOf(eight).setFloat64(0, value as number, true);
      bytes.write(eight);
      return;
    }
    case 'binary':
      protocol.writeBinary(value as Uint8Array);
      return;
    case 'string':
      protocol.writeString(value as string);
      return;
    case 'struct':
      writeFields(protocol, bytes, type.table, value as Record<string, unknown>);
      return;
    default: {
      const items = value as readonly unknown[];
      if (type.kind === 'list') protocol.writeListBegin(TTYPE[type.of.kind], items.length);
      else protocol.writeSetBegin(TTYPE[type.of.kind], items.length);
      for (const item of items) writeValue(protocol, bytes, type.of, item, what);
      return;
    }
  }
}

function integerIn(value: unknown, kind: keyof typeof INTEGER_BOUNDS, what: string): number {
  const bound = INTEGER_BOUNDS[kind];
  if (!Number.isSafeInteger(value) || (value as number) < -bound || (value as number) >= bound) {
    throw new ProtocolError('THRIFT', `${what}: ${value} is no ${kind} that a number can hold`);
  }
  return value as number;
}

/** Decodes one structure from the front of `bytes`. Throws ProtocolError THRIFT on anything that breaks the rules. */
export function readStruct<T extends StructTable>(
  table: T,
  bytes: Uint8Array,
): { value: StructValue<T>; bytesRead: number } {
  const source = new ThriftBytes(bytes);
  try {
    const value = new Reader(source).struct(table, 1);
    return { value: value as StructValue<T>, bytesRead: source.position };
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    // thrift's own classes complain about type nibbles and varints in errors of their own.
    throw new ProtocolError('THRIFT', `${table.name} before byte ${source.position}: ${(error as Error).message}`);
  }
}

class Reader {
  readonly #source: ThriftBytes;
  readonly #protocol: TCompactProtocol;

  constructor(source: ThriftBytes) {
    this.#source = source;
    this.#protocol = new TCompactProtocol(source);
  }

  struct(table: StructTable, depth: number): Record<string, unknown> {
    this.#checkDepth(depth);
    const value: Record<string, unknown> = {};
    this.#protocol.readStructBegin();
    for (;;) {
      const { ftype, fid } = this.#protocol.readFieldBegin();
      if (ftype === STOP) break;
      const known = table.byId.get(fid);
      if (known === undefined) {
        this.#skip(ftype, depth, true);
      } else {
        const [property, field] = known;
        if (ftype !== TTYPE[field.type.kind]) {
          this.#fail(`${table.name}.${property} has type ${ftype} instead of ${TTYPE[field.type.kind]}`);
        }
        value[property] = this.#value(field.type, depth, `${table.name}.${property}`, true);
      }
      this.#protocol.readFieldEnd();
    }
    this.#protocol.readStructEnd();
    for (const [property, field] of Object.entries(table.fields)) {
      if (field.required && value[property] === undefined) this.#fail(`${table.name}.${property} is missing`);
    }
    return value;
  }

  #value(type: ThriftType, depth: number, what: string, asField: boolean): unknown {
    switch (type.kind) {
      case 'bool':
        return this.#bool(asField, what);
      case 'i8':
        return this.#protocol.readByte();
      case 'i16':
      case 'i32':
      case 'i64':
        return this.#integer(type.kind, what);
      case 'double':
        return viewOf(this.#source.read(8)).getFloat64(0, true);
      case 'binary':
        return Uint8Array.from(this.#protocol.readBinary());
      case 'string':
        return this.#protocol.readString();
      case 'struct':
        return this.struct(type.table, depth + 1);
      default: {
        const { etype, size } = type.kind === 'list' ? this.#protocol.readListBegin() : this.#protocol.readSetBegin();
        this.#checkDepth(depth + 1);
        if (size > 0 && etype !== TTYPE[type.of.kind]) {
          this.#fail(`${what} has elements of type ${etype} instead of ${TTYPE[type.of.kind]}`);
        }
        this.#checkCount(size, bytesMinOf(type.of), what);
        const items: unknown[] = [];
        for (let i = 0; i < size; i++) items.push(this.#value(type.of, depth + 1, what, false));
        return items;
      }
    }
  }

  #bool(asField: boolean, what: string): boolean {
    if (asField) return this.#protocol.readBool();
    // An element is a byte of its own; thrift's readBool looks for a property that a number does not have.
    const byte = this.#protocol.readByte();
    if (byte < 0 || byte > 2) this.#fail(`${what}: ${byte} is no bool`);
    return byte === 1;
  }

  #integer(kind: 'i16' | 'i32' | 'i64', what: string): number {
    const value = this.#source.readZigzag();
    const bound = INTEGER_BOUNDS[kind];
    if (!Number.isSafeInteger(value) || value < -bound || value >= bound) {
      this.#fail(`${what} is outside ${kind} or beyond 2^53`);
    }
    return value;
  }

  #skip(ttype: number, depth: number, asField: boolean): void {
    this.#checkDepth(depth);
    switch (ttype) {
      case TTYPE.bool:
        if (asField) this.#protocol.readBool();
        else this.#source.read(1);
        return;
      case TTYPE.i8:
        this.#source.read(1);
        return;
      case TTYPE.i16:
      case TTYPE.i32:
      case TTYPE.i64:
        this.#protocol.readI64();
        return;
      case TTYPE.double:
        this.#source.read(8);
        return;
      case TTYPE.uuid:
        this.#source.read(16);
        return;
      case TTYPE.binary:
        this.#protocol.readBinary();
        return;
      case TTYPE.struct:
        this.#skipStruct(depth);
        return;
      case TTYPE.list:
      case TTYPE.set: {
        const { etype, size } = this.#protocol.readListBegin();
        this.#checkCount(size, 1, 'an unknown list');
        for (let i = 0; i < size; i++) this.#skip(etype, depth + 1, false);
        return;
      }
      case TTYPE.map: {
        const { ktype, vtype, size } = this.#protocol.readMapBegin();
        this.#checkCount(size, 2, 'an unknown map');
        for (let i = 0; i < size; i++) {
          this.#skip(ktype, depth + 1, false);
          this.#skip(vtype, depth + 1, false);
        }
        return;
      }
      default:
        this.#fail(`unknown type ${ttype}`);
    }
  }

  #skipStruct(depth: number): void {
    this.#protocol.readStructBegin();
    for (;;) {
      const { ftype } = this.#protocol.readFieldBegin();
      if (ftype === STOP) break;
      this.#skip(ftype, depth + 1, true);
      this.#protocol.readFieldEnd();
    }
    this.#protocol.readStructEnd();
  }

  #checkDepth(depth: number): void {
    if (depth > THRIFT_DEPTH_MAX) this.#fail(`nested deeper than ${THRIFT_DEPTH_MAX}`);
  }

  #checkCount(count: number, bytesEach: number, what: string): void {
    if (!(count * bytesEach <= this.#source.remaining)) {
      this.#fail(`${what} claims ${count} elements with ${this.#source.remaining} bytes left`);
    }
  }

  #fail(reason: string): never {
    throw new ProtocolError('THRIFT', `${reason} (before byte ${this.#source.position})`);
  }
}
