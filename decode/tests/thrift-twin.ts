/**
 * The slow twin of decode/format/compact.ts: the same structures of parquet.thrift through the `thrift` package's
 * TCompactProtocol, driven by tables. It reads to plain trees for tests to compare with, and writes any footer or page
 * header a test can think of.
 */
import { createRequire } from 'node:module';

/** Of the thrift package, which comes without types, what is used here. */
interface Int64 {
  readonly buffer: Uint8Array;
  readonly offset: number;
}
interface Protocol {
  readStructBegin(): void;
  readStructEnd(): void;
  readFieldBegin(): { ftype: number; fid: number };
  readFieldEnd(): void;
  readListBegin(): { etype: number; size: number };
  readListEnd(): void;
  readBool(): boolean;
  readByte(): number;
  readI16(): number;
  readI32(): number;
  readI64(): Int64;
  readDouble(): number;
  readBinary(): Uint8Array;
  skip(type: number): void;
  writeStructBegin(name: string): void;
  writeStructEnd(): void;
  writeFieldBegin(name: string, type: number, id: number): void;
  writeFieldEnd(): void;
  writeFieldStop(): void;
  writeListBegin(type: number, size: number): void;
  writeListEnd(): void;
  writeBool(value: boolean): void;
  writeByte(value: number): void;
  writeI16(value: number): void;
  writeI32(value: number): void;
  writeI64(value: Int64): void;
  writeDouble(value: number): void;
  writeBinary(value: Uint8Array): void;
}
interface ThriftPackage {
  readonly TCompactProtocol: new (transport: object) => Protocol;
  readonly TFramedTransport: new (bytes: Uint8Array) => object;
  readonly Int64: new (buffer: Uint8Array, offset?: number) => Int64;
}
const thrift = createRequire(import.meta.url)('thrift') as ThriftPackage;

/** Thrift's own type numbers. */
const T = { BOOL: 2, BYTE: 3, DOUBLE: 4, I16: 6, I32: 8, I64: 10, STRING: 11, STRUCT: 12, LIST: 15 } as const;

export type Kind =
  | 'bool'
  | 'i8'
  | 'i16'
  | 'i32'
  | 'i64'
  | 'double'
  | 'binary'
  | 'string'
  | { readonly struct: Table }
  | { readonly list: Kind };
export type Table = Readonly<Record<number, readonly [name: string, kind: Kind]>>;
/** A struct as read: i64 are bigint, binary are bytes; fields not in the table are left out. */
export type Tree = { [field: string]: Value };
export type Value = boolean | number | bigint | string | Uint8Array | Value[] | Tree;

function typeOf(kind: Kind): number {
  if (typeof kind === 'object') return 'struct' in kind ? T.STRUCT : T.LIST;
  switch (kind) {
    case 'bool':
      return T.BOOL;
    case 'i8':
      return T.BYTE;
    case 'i16':
      return T.I16;
    case 'i32':
      return T.I32;
    case 'i64':
      return T.I64;
    case 'double':
      return T.DOUBLE;
    case 'binary':
    case 'string':
      return T.STRING;
  }
}

export function readStruct(table: Table, bytes: Uint8Array): Tree {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return readTree(new thrift.TCompactProtocol(new thrift.TFramedTransport(buffer)), table);
}

function readTree(p: Protocol, table: Table): Tree {
  const tree: Tree = {};
  p.readStructBegin();
  for (;;) {
    const { ftype, fid } = p.readFieldBegin();
    if (ftype === 0) break;
    const field = table[fid];
    if (field === undefined || typeOf(field[1]) !== ftype) p.skip(ftype);
    else tree[field[0]] = readValue(p, field[1]);
    p.readFieldEnd();
  }
  p.readStructEnd();
  return tree;
}

function readValue(p: Protocol, kind: Kind): Value {
  if (typeof kind === 'object') {
    if ('struct' in kind) return readTree(p, kind.struct);
    const { size } = p.readListBegin();
    const list: Value[] = [];
    for (let i = 0; i < size; i++) list.push(readValue(p, kind.list));
    p.readListEnd();
    return list;
  }
  switch (kind) {
    case 'bool':
      return p.readBool();
    case 'i8':
      return (p.readByte() << 24) >> 24;
    case 'i16':
      return p.readI16();
    case 'i32':
      return p.readI32();
    case 'i64': {
      const { buffer, offset } = p.readI64();
      return Buffer.from(buffer).readBigInt64BE(offset);
    }
    case 'double':
      return p.readDouble();
    case 'binary':
      return Uint8Array.from(p.readBinary());
    case 'string':
      return Buffer.from(p.readBinary()).toString('utf8');
  }
}

export function writeStruct(table: Table, tree: Tree): Uint8Array {
  const chunks: Buffer[] = [];
  const sink = {
    write: (part: Uint8Array | string) => chunks.push(Buffer.from(part as Uint8Array)),
    flush: () => undefined,
  };
  writeTree(new thrift.TCompactProtocol(sink), table, tree);
  return Uint8Array.from(Buffer.concat(chunks));
}

function writeTree(p: Protocol, table: Table, tree: Tree): void {
  p.writeStructBegin('');
  for (const [id, [name, kind]] of Object.entries(table)) {
    const value = tree[name];
    if (value === undefined) continue;
    p.writeFieldBegin(name, typeOf(kind), Number(id));
    writeValue(p, kind, value);
    p.writeFieldEnd();
  }
  p.writeFieldStop();
  p.writeStructEnd();
}

function writeValue(p: Protocol, kind: Kind, value: Value): void {
  if (typeof kind === 'object') {
    if ('struct' in kind) {
      writeTree(p, kind.struct, value as Tree);
      return;
    }
    const list = value as Value[];
    p.writeListBegin(typeOf(kind.list), list.length);
    for (const element of list) writeValue(p, kind.list, element);
    p.writeListEnd();
    return;
  }
  switch (kind) {
    case 'bool':
      p.writeBool(value as boolean);
      return;
    case 'i8':
      p.writeByte(value as number);
      return;
    case 'i16':
      p.writeI16(value as number);
      return;
    case 'i32':
      p.writeI32(value as number);
      return;
    case 'i64': {
      const bytes = Buffer.alloc(8);
      bytes.writeBigInt64BE(BigInt(value as number | bigint));
      p.writeI64(new thrift.Int64(bytes));
      return;
    }
    case 'double':
      p.writeDouble(value as number);
      return;
    case 'binary':
      p.writeBinary(Buffer.from(value as Uint8Array));
      return;
    case 'string':
      p.writeBinary(Buffer.from(value as string));
      return;
  }
}
