/**
 * What thrift's protocol classes read from and write to: a byte array with an end that is checked before anything is
 * allocated. Stands in for thrift's own transports, which copy more and check less.
 */
import { ProtocolError } from './errors.ts';

const TEXT = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export class ThriftBytes {
  readonly #bytes: Uint8Array;
  #at = 0;
  readonly #written: Uint8Array[] = [];
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
    this.#written.push(bytes);
    this.#writtenBytes += bytes.byteLength;
  }

  flush(): void {}

  /** Everything that was written, in one piece. */
  taken(): Uint8Array {
    const out = new Uint8Array(this.#writtenBytes);
    let at = 0;
    for (const piece of this.#written) {
      out.set(piece, at);
      at += piece.byteLength;
    }
    return out;
  }

  #need(length: number): void {
    if (!(length >= 0 && length <= this.remaining)) {
      throw new ProtocolError('THRIFT', `${length} bytes wanted at byte ${this.#at}, ${this.remaining} are left`);
    }
  }
}
