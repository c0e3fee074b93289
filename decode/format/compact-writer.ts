/**
 * Writes Thrift's compact protocol (grammar: compact.ts) for headers and footers of our own: page headers of the decoded
 * view, and footers that are another file's with some fields changed, whose other fields are copied as bytes. So a
 * struct is split into fields without looking into them (`splitStruct`), and put together again field by field.
 * Not here: checks of what is written beyond ranges of integers; the writer's callers know their structs.
 */
import type { CompactReader } from './compact.ts';
import { Wire } from './compact.ts';

/** A field of a struct: its id, wire type, and where its value lies in the bytes. Booleans have no bytes. */
export interface RawField {
  readonly id: number;
  readonly wire: number;
  readonly start: number;
  readonly end: number;
}

/** The fields of the struct that the reader stands at, which is read past. Throws THRIFT. */
export function splitStruct(r: CompactReader): RawField[] {
  const fields: RawField[] = [];
  for (let last = 0; ; ) {
    const wire = r.field(last);
    if (wire === Wire.STOP) return fields;
    last = r.id;
    const start = r.pos;
    r.skip(wire);
    fields.push({ id: last, wire, start, end: r.pos });
  }
}

export class CompactWriter {
  #bytes = new Uint8Array(256);
  #length = 0;
  /** Ids of the last fields of the structs that are open. */
  readonly #last: number[] = [0];

  /** What has been written. */
  bytes(): Uint8Array {
    return this.#bytes.slice(0, this.#length);
  }

  field(id: number, wire: number): this {
    const last = this.#last.at(-1)!;
    if (id > last && id - last <= 15) this.#byte(((id - last) << 4) | wire);
    else this.#byte(wire).#zigzag(BigInt(id));
    this.#last[this.#last.length - 1] = id;
    return this;
  }

  /** An integer field of 32 or 64 bits. */
  integer(id: number, wire: typeof Wire.I32 | typeof Wire.I64, value: number): this {
    if (!Number.isSafeInteger(value)) throw new RangeError(`field ${id}: ${value}`);
    return this.field(id, wire).#zigzag(BigInt(value));
  }

  /** A field as it is in `source`. */
  copy(source: Uint8Array, { id, wire, start, end }: RawField): this {
    return this.field(id, wire).#append(source.subarray(start, end));
  }

  list(id: number, element: number, size: number): this {
    this.field(id, Wire.LIST);
    if (size < 15) return this.#byte((size << 4) | element);
    return this.#byte(0xf0 | element).#varint(BigInt(size));
  }

  /** An element of a list of integers. */
  element(value: number): this {
    return this.#zigzag(BigInt(value));
  }

  /** Begins the value of a struct field or a list's element; `end` ends it, and the outermost struct too. */
  begin(): this {
    this.#last.push(0);
    return this;
  }

  end(): this {
    this.#last.pop();
    return this.#byte(0);
  }

  #zigzag(value: bigint): this {
    return this.#varint(BigInt.asUintN(64, (value << 1n) ^ (value >> 63n)));
  }

  #varint(value: bigint): this {
    let rest = value;
    while (rest >= 0x80n) {
      this.#byte(Number(rest & 0x7fn) | 0x80);
      rest >>= 7n;
    }
    return this.#byte(Number(rest));
  }

  #byte(byte: number): this {
    this.#room(1);
    this.#bytes[this.#length++] = byte;
    return this;
  }

  #append(bytes: Uint8Array): this {
    this.#room(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
    return this;
  }

  #room(bytes: number): void {
    if (this.#length + bytes <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(2 * this.#bytes.length, this.#length + bytes));
    grown.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = grown;
  }
}
