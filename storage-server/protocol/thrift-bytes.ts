/**
 * What thrift's protocol classes read from and write to: a byte array with an end that is checked before anything is
 * allocated. Stands in for thrift's own transports, which copy more and check less.
 */
import { ProtocolError } from './errors.ts';

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
