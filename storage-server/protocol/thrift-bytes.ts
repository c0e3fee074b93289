/**
 * What thrift's protocol classes read from and write to: a byte array with an end that is checked before anything is
 * allocated. Stands in for thrift's own transports, which copy more and check less.
 */
import { ProtocolError } from './errors.ts';

/** Of a 64-bit number. */
const VARINT_BYTES_MAX = 10;
const SCRATCH = new Uint8Array(VARINT_BYTES_MAX);

const TEXT = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export class ThriftBytes {
  readonly #bytes: Uint8Array;
  #at = 0;
  #written = new Uint8Array(256);
  #writtenBytes = 0;

  constructor(bytes: Uint8Array = new Uint8Array(0)) {
    this.#bytes = bytes;
  }

  /** Bytes read so far. */
  get position(): number {
    return this.#at;
  }

  get remaining(): number {
    return this.#bytes.byteLength - this.#at;
  }

  /** The next byte, signed as thrift has it. */
  readByte(): number {
    this.#need(1);
    const byte = this.#bytes[this.#at++]!;
    return byte > 127 ? byte - 256 : byte;
  }

  read(length: number): Uint8Array {
    this.#need(length);
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  /** A zigzag varint of at most ten bytes; NaN when a number can't hold it exactly. */
  readZigzag(): number {
    // Two parts that bit operations can work on: 28 bits, and whatever is above them.
    let low = 0;
    let high = 0;
    for (let k = 0; k < VARINT_BYTES_MAX; k++) {
      this.#need(1);
      const byte = this.#bytes[this.#at++]!;
      if (k < 4) low |= (byte & 0x7f) << (7 * k);
      else high += (byte & 0x7f) * 2 ** (7 * (k - 4));
      if (byte > 0x7f) continue;
      if (high >= 2 ** 26) return Number.NaN;
      const half = high * 2 ** 27 + (low >>> 1);
      return (low & 1) === 0 ? half : -half - 1;
    }
    throw new ProtocolError('THRIFT', `a number of more than ${VARINT_BYTES_MAX} bytes before byte ${this.#at}`);
  }

  readString(length: number): string {
    const bytes = this.read(length);
    try {
      return TEXT.decode(bytes);
    } catch {
      throw new ProtocolError('THRIFT', `text that is not UTF-8 before byte ${this.#at}`);
    }
  }

  write(bytes: Uint8Array): void {
    const end = this.#writtenBytes + bytes.byteLength;
    if (end > this.#written.byteLength) {
      const grown = new Uint8Array(Math.max(end, 2 * this.#written.byteLength));
      grown.set(this.#written);
      this.#written = grown;
    }
    this.#written.set(bytes, this.#writtenBytes);
    this.#writtenBytes = end;
  }

  /** A safe integer as a zigzag varint. */
  writeZigzag(value: number): void {
    const half = value < 0 ? -value - 1 : value;
    let low = (half % 2 ** 27) * 2 + (value < 0 ? 1 : 0);
    let high = Math.floor(half / 2 ** 27);
    const bytes = SCRATCH;
    let n = 0;
    for (; high > 0 && n < 4; low >>>= 7) bytes[n++] = (low & 0x7f) | 0x80;
    // all of the low part is written, or nothing lies above it
    if (high === 0) for (high = low; high > 0x7f; high >>>= 7) bytes[n++] = (high & 0x7f) | 0x80;
    else for (; high > 0x7f; high = Math.floor(high / 128)) bytes[n++] = (high % 128) | 0x80;
    bytes[n++] = high;
    this.write(bytes.subarray(0, n));
  }

  flush(): void {}

  /** Everything that was written. */
  taken(): Uint8Array {
    return this.#written.slice(0, this.#writtenBytes);
  }

  #need(length: number): void {
    if (!(length >= 0 && length <= this.remaining)) {
      throw new ProtocolError('THRIFT', `${length} bytes wanted at byte ${this.#at}, ${this.remaining} are left`);
    }
  }
}
