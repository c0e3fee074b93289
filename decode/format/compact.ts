/**
 * Reader of Thrift's compact protocol over bytes that nobody vouches for: Parquet footers and page headers.
 * Written for speed and for hostile input: no closures and no objects per field, every length checked against the
 * bytes left before it is used, nesting and work bounded, a field of another wire type than expected is an error,
 * never a conversion. The `thrift` package is its twin in tests; `bench/footer.ts` shows what the difference is worth.
 *
 * Grammar (thrift-compact-protocol.md):
 *   struct = { field-header value } 0x00
 *   field-header = dddd tttt            id = previous id + d, d != 0
 *                | 0000 tttt zigzag(id)
 *   list   = ssss tttt { value }        s < 15
 *          | 1111 tttt varint(size) { value }
 *   map    = 0x00 | varint(size) kkkk vvvv { key value }
 *   binary = varint(length) bytes;  double = 8 bytes, little endian;  bool in a field = its wire type
 *   integers = varint(zigzag(n)), at most 10 bytes
 * Not here: writing, unions' "exactly one field", required fields. Those are the business of who reads the struct.
 */
import { DecodeError } from '../errors.ts';
import { structEnd } from './compact-skip.ts';
import { THRIFT_DEPTH_MAX } from './limits.ts';

/** Wire types. A boolean field's value is its wire type. */
export const Wire = {
  STOP: 0,
  TRUE: 1,
  FALSE: 2,
  I8: 3,
  I16: 4,
  I32: 5,
  I64: 6,
  DOUBLE: 7,
  BINARY: 8,
  LIST: 9,
  SET: 10,
  MAP: 11,
  STRUCT: 12,
  UUID: 13,
} as const;

const WIRE_NAMES = [
  'stop',
  'true',
  'false',
  'i8',
  'i16',
  'i32',
  'i64',
  'double',
  'binary',
  'list',
  'set',
  'map',
  'struct',
  'uuid',
];

/** Thrown instead of a DecodeError by a reader with `partial` set when the bytes end inside something. */
export const CUT = new Error('cut: more bytes are needed');

export class CompactReader {
  /** Next byte to read, an index into `bytes`. */
  pos = 0;
  end = 0;
  /** Field id of the last `field()`, element type of the last `list()`. */
  id = 0;
  element = 0;
  /** Fields, elements and entries that may still be read: bounds work that does not advance by much. */
  budget = Number.POSITIVE_INFINITY;
  /** Running out of bytes throws CUT: the caller will come again with more. */
  partial = false;
  private bytes: Uint8Array;
  /** Absolute file offset of bytes[0] for messages, or -1 when not known. */
  private fileOffset = -1;
  private start = 0;

  constructor(bytes: Uint8Array, fileOffset = -1) {
    this.bytes = bytes;
    this.end = bytes.length;
    this.fileOffset = fileOffset;
  }

  /** Uses the same reader for other bytes: [start, end) of `bytes`. */
  reset(bytes: Uint8Array, start: number, end: number): void {
    this.bytes = bytes;
    this.pos = start;
    this.start = start;
    this.end = end;
  }

  /** Another reader of the same bytes, at their start. */
  fork(): CompactReader {
    return new CompactReader(this.bytes, this.fileOffset);
  }

  fail(reason: string): never {
    if (this.fileOffset < 0) throw new DecodeError('THRIFT', `${reason} at byte ${this.pos - this.start}`);
    throw new DecodeError('THRIFT', reason, { offset: this.fileOffset + this.pos });
  }

  private cut(): never {
    if (this.partial) throw CUT;
    this.fail('the bytes end inside a value');
  }

  private spend(n: number): void {
    this.budget -= n;
    if (this.budget < 0) this.fail('too many fields');
  }

  private byte(): number {
    if (this.pos >= this.end) this.cut();
    return this.bytes[this.pos++]!;
  }

  /** A varint of at most 32 bits: lengths, sizes. Longer ones are refused. */
  private varint32(): number {
    let b = this.byte();
    if (b < 0x80) return b;
    let value = b & 0x7f;
    for (let shift = 7; shift < 28; shift += 7) {
      b = this.byte();
      value |= (b & 0x7f) << shift;
      if (b < 0x80) return value;
    }
    b = this.byte();
    if (b > 0x0f) this.fail('a size over 32 bits');
    return (value | (b << 28)) >>> 0;
  }

  /** zigzag(varint) of up to 64 bits. Beyond 2^53 the result is rounded, and so never a safe integer. */
  private zigzag(): number {
    const { bytes, end } = this;
    let pos = this.pos;
    let low = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      if (pos >= end) this.cut();
      const b = bytes[pos++]!;
      low |= (b & 0x7f) << shift;
      if (b < 0x80) {
        this.pos = pos;
        return (low >>> 1) ^ -(low & 1);
      }
    }
    let high = 0;
    for (let i = 4; ; i++) {
      if (pos >= end) this.cut();
      const b = bytes[pos++]!;
      if (i === 4) {
        low |= (b & 0x0f) << 28;
        high = (b & 0x7f) >> 4;
      } else if (i < 9) {
        high |= (b & 0x7f) << (7 * i - 32);
      } else {
        if (b > 1) this.fail('an integer over 64 bits');
        high |= b << 31;
      }
      if (b < 0x80) break;
    }
    this.pos = pos;
    const sign = -(low & 1);
    const magnitudeLow = ((low >>> 1) | (high << 31)) ^ sign;
    const magnitudeHigh = (high >>> 1) ^ sign;
    return magnitudeHigh * 0x1_0000_0000 + (magnitudeLow >>> 0);
  }

  private expect(wire: number, expected: number): void {
    if (wire !== expected) {
      this.fail(`field ${this.id} is ${wireName(wire)}, not ${wireName(expected)}`);
    }
  }

  /**
   * Reads a field header; `previous` is the id of the struct's previous field (0 at its start). Returns the wire type
   * and leaves the id in `id`; Wire.STOP at the end of the struct.
   */
  field(previous: number): number {
    const b = this.byte();
    if (b === 0) return 0;
    this.budget--;
    if (this.budget < 0) this.spend(0);
    const wire = b & 0x0f;
    if (wire === 0 || wire > 13) this.fail(`wire type ${wire} does not exist`);
    const delta = b >> 4;
    this.id = delta === 0 ? this.zigzag() : previous + delta;
    return wire;
  }

  bool(wire: number): boolean {
    if (wire === Wire.TRUE) return true;
    this.expect(wire, Wire.FALSE);
    return false;
  }

  i8(wire: number): number {
    this.expect(wire, Wire.I8);
    return (this.byte() << 24) >> 24;
  }

  i16(wire: number): number {
    this.expect(wire, Wire.I16);
    return this.narrow(this.zigzag(), 0x7fff);
  }

  i32(wire: number): number {
    this.expect(wire, Wire.I32);
    return this.narrow(this.zigzag(), 0x7fff_ffff);
  }

  /** Rounded beyond 2^53: whoever needs it exact tests Number.isSafeInteger. */
  i64(wire: number): number {
    this.expect(wire, Wire.I64);
    return this.zigzag();
  }

  private narrow(value: number, max: number): number {
    if (value > max || value < -max - 1) this.fail(`field ${this.id} holds ${value}, more than its type can`);
    return value;
  }

  /** A view of the bytes of a binary or string field; it lives as long as the input does. */
  binary(wire: number): Uint8Array {
    this.expect(wire, Wire.BINARY);
    const length = this.length();
    const start = this.pos;
    this.pos = start + length;
    return this.bytes.subarray(start, this.pos);
  }

  string(wire: number): string {
    this.expect(wire, Wire.BINARY);
    const length = this.length();
    const { bytes, pos: start } = this;
    this.pos = start + length;
    return decodeText(bytes, start, this.pos);
  }

  /** Reads past a string and returns where its length stands, from where `string` and `equalsText` read it. */
  skipString(wire: number): number {
    this.expect(wire, Wire.BINARY);
    const at = this.pos;
    this.advance(this.length());
    return at;
  }

  /** Whether the coming string (no field header) is `expected`; read past in both cases. */
  equalsText(expected: string): boolean {
    const length = this.length();
    const { bytes, pos: start } = this;
    this.pos = start + length;
    // UTF-8 has at most 3 bytes for each of a string's units
    if (length < expected.length || length > 3 * expected.length) return false;
    // names that differ mostly do at their ends
    if (length === expected.length && length > 0 && bytes[this.pos - 1]! !== expected.charCodeAt(length - 1)) {
      if (bytes[this.pos - 1]! < 0x80) return false;
    }
    for (let i = 0; i < length; i++) {
      const b = bytes[start + i]!;
      if (b >= 0x80) return decodeText(bytes, start, this.pos) === expected;
      if (b !== expected.charCodeAt(i)) return false;
    }
    return true;
  }

  private length(): number {
    const length = this.varint32();
    if (length > this.end - this.pos) this.cut();
    return length;
  }

  /**
   * Reads a list's header: returns its size and leaves the wire type of its elements in `element`. The size is never
   * more than the bytes left. An empty list's element type is not checked: writers put anything there.
   */
  list(wire: number, element: number): number {
    this.expect(wire, Wire.LIST);
    const size = this.sequence();
    if (size > 0 && this.element !== element) {
      this.fail(`the list in field ${this.id} holds ${wireName(this.element)}, not ${wireName(element)}`);
    }
    return size;
  }

  private sequence(): number {
    const b = this.byte();
    const short = b >> 4;
    const size = short === 15 ? this.varint32() : short;
    this.element = b & 0x0f;
    if (size * bytesLeast(this.element) > this.end - this.pos) this.cut();
    this.spend(size);
    return size;
  }

  /** Reads past a value. Nested deeper than THRIFT_DEPTH_MAX is an error, so recursion stays shallow. */
  skip(wire: number, depth = 0): void {
    if (wire === Wire.TRUE || wire === Wire.FALSE) return;
    if (wire === Wire.I16 || wire === Wire.I32 || wire === Wire.I64) this.zigzag();
    else if (wire === Wire.BINARY) this.advance(this.length());
    else if (wire === Wire.STRUCT) this.skipStruct(depth);
    else if (wire === Wire.LIST || wire === Wire.SET) this.skipSequence(depth);
    else if (wire === Wire.I8) this.advance(1);
    else if (wire === Wire.DOUBLE) this.advance(8);
    else if (wire === Wire.MAP) this.skipMap(depth);
    else if (wire === Wire.UUID) this.advance(16);
    else this.fail(`wire type ${wire} does not exist`);
  }

  /** Reads past an element of a list, where a boolean takes a byte. */
  private skipElement(wire: number, depth: number): void {
    if (wire === Wire.TRUE || wire === Wire.FALSE) this.advance(1);
    else this.skip(wire, depth);
  }

  private skipSequence(depth: number): void {
    if (depth >= THRIFT_DEPTH_MAX) this.fail('nested too deep');
    const size = this.sequence();
    const element = this.element;
    for (let i = 0; i < size; i++) this.skipElement(element, depth + 1);
  }

  private skipMap(depth: number): void {
    if (depth >= THRIFT_DEPTH_MAX) this.fail('nested too deep');
    const size = this.varint32();
    if (size === 0) return;
    const types = this.byte();
    const key = types >> 4;
    const value = types & 0x0f;
    if (size * (bytesLeast(key) + bytesLeast(value)) > this.end - this.pos) this.cut();
    this.spend(size);
    for (let i = 0; i < size; i++) {
      this.skipElement(key, depth + 1);
      this.skipElement(value, depth + 1);
    }
  }

  private skipStruct(depth: number): void {
    // where nothing is counted and nothing is cut, the fast twin does; where it gives up, this one says why
    if (depth === 0 && this.budget === Number.POSITIVE_INFINITY && !this.partial) {
      const after = structEnd(this.bytes, this.pos, this.end);
      if (after >= 0) {
        this.pos = after;
        return;
      }
    }
    if (depth >= THRIFT_DEPTH_MAX) this.fail('nested too deep');
    for (let previous = 0; ; previous = this.id) {
      const wire = this.field(previous);
      if (wire === Wire.STOP) return;
      const id = this.id;
      this.skip(wire, depth + 1);
      this.id = id;
    }
  }

  private advance(bytes: number): void {
    if (bytes > this.end - this.pos) this.cut();
    this.pos += bytes;
  }
}

/** The fewest bytes an element of a list takes. */
function bytesLeast(wire: number): number {
  return wire === Wire.DOUBLE ? 8 : wire === Wire.UUID ? 16 : 1;
}

function wireName(wire: number): string {
  return WIRE_NAMES[wire] ?? `wire type ${wire}`;
}

/** UTF-8 to string; bytes that are not UTF-8 become U+FFFD. Names are short and mostly ASCII: no decoder call then. */
function decodeText(bytes: Uint8Array, start: number, end: number): string {
  if (end - start <= 24) {
    let text = '';
    for (let i = start; i < end; i++) {
      const b = bytes[i]!;
      if (b >= 0x80) return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8');
      text += String.fromCharCode(b);
    }
    return text;
  }
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8');
}
