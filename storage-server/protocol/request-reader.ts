/**
 * Cuts what a client sends into a hello and requests, whatever the pieces it arrives in. Buffers at most one hello
 * with its authentication; a request that lies whole in a piece is read in place. After an error it reads nothing more.
 * A stream that does not begin with the magic is an error at the first byte that differs.
 */
import { ProtocolError } from './errors.ts';
import { decodeRequest, type Request } from './frames.ts';
import { checkMagic, decodeHello, type Hello } from './handshake.ts';
import { HELLO_BYTES, REQUEST_BYTES } from './limits.ts';
import { viewOf } from './number.ts';

export interface RequestHandler {
  /** The handshake is complete. Return false to have nothing more read. */
  onHello(hello: Hello, auth: Uint8Array): boolean;
  /** Return false to have nothing more read. */
  onRequest(request: Request): boolean;
}

export class RequestReader {
  readonly #handler: RequestHandler;
  #hello: Hello | undefined;
  #greeted = false;
  #ended = false;
  #held = new Uint8Array(HELLO_BYTES);
  #heldBytes = 0;
  /** Bytes of the unit being collected. */
  #unitBytes = HELLO_BYTES;

  constructor(handler: RequestHandler) {
    this.#handler = handler;
  }

  /** Takes the next bytes of the stream. Throws ProtocolError; from then on pushes are ignored. */
  push(piece: Uint8Array): void {
    let at = 0;
    try {
      while (at < piece.byteLength && !this.#ended) {
        if (this.#greeted && this.#heldBytes === 0 && piece.byteLength - at >= REQUEST_BYTES) {
          at = this.#pushWhole(piece, at);
          continue;
        }
        const take = Math.min(this.#unitBytes - this.#heldBytes, piece.byteLength - at);
        this.#held.set(piece.subarray(at, at + take), this.#heldBytes);
        this.#heldBytes += take;
        at += take;
        // what speaks something else is not waited for
        if (this.#hello === undefined) checkMagic(this.#held.subarray(0, this.#heldBytes));
        if (this.#heldBytes === this.#unitBytes) this.#unit();
      }
    } catch (error) {
      this.#ended = true;
      throw error;
    }
  }

  /** Whether the stream stopped inside a message. */
  get inside(): boolean {
    return this.#heldBytes !== 0;
  }

  #pushWhole(piece: Uint8Array, from: number): number {
    const view = viewOf(piece);
    let at = from;
    while (!this.#ended && piece.byteLength - at >= REQUEST_BYTES) {
      if (!this.#handler.onRequest(decodeRequest(view, at))) this.#ended = true;
      at += REQUEST_BYTES;
    }
    return at;
  }

  #unit(): void {
    if (this.#greeted) {
      this.#heldBytes = 0;
      if (!this.#handler.onRequest(decodeRequest(viewOf(this.#held), 0))) this.#ended = true;
      return;
    }
    if (this.#hello === undefined) {
      this.#hello = decodeHello(this.#held.subarray(0, HELLO_BYTES));
      if (this.#hello.authBytes > 0) {
        const grown = new Uint8Array(HELLO_BYTES + this.#hello.authBytes);
        grown.set(this.#held);
        this.#held = grown;
        this.#unitBytes = grown.byteLength;
        return;
      }
    }
    const auth = this.#held.slice(HELLO_BYTES, this.#unitBytes);
    this.#greeted = true;
    this.#held = new Uint8Array(REQUEST_BYTES);
    this.#heldBytes = 0;
    this.#unitBytes = REQUEST_BYTES;
    if (!this.#handler.onHello(this.#hello, auth)) this.#ended = true;
  }
}

/** True for an error made here, as opposed to a bug. */
export function isProtocolError(error: unknown): error is ProtocolError {
  return error instanceof ProtocolError;
}
