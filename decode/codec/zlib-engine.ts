/**
 * A zlib object of Node's that writes where a page belongs. The documented calls make an object for every page and
 * collect its output in pieces of 16 KiB, to be put together and copied; an object that is kept, and given the target,
 * does without all that. What it takes, `_handle.writeSync` and `_writeState`, is what those calls do themselves, but it
 * is not documented: where a Node has it otherwise there is no engine, and codec.ts makes the documented calls.
 */

/** `writeSync` tells what is left over in `_writeState`: room in the target, then bytes of the source. */
interface ZlibObject {
  readonly _handle: {
    writeSync(
      flush: number,
      source: Uint8Array,
      sourceStart: number,
      sourceBytes: number,
      target: Uint8Array,
      targetStart: number,
      targetBytes: number,
    ): void;
    onerror: (message: string, errno: number, code: string) => void;
  };
  readonly _writeState: Uint32Array;
  reset(): void;
  close(): void;
}

/** What one write did, in bytes. */
interface Progress {
  readonly used: number;
  readonly made: number;
  /** Of the target. */
  readonly room: number;
}

export class ZlibEngine {
  readonly #object: ZlibObject;
  readonly #flush: number;
  #failure: Error | undefined;

  private constructor(object: ZlibObject, flush: number) {
    this.#object = object;
    this.#flush = flush;
    object._handle.onerror = (message, errno, code) => {
      this.#failure = Object.assign(new Error(message), { errno, code });
    };
  }

  /** An engine on a new zlib object, which is its own from now on; `flush` says that the input is all there is. */
  static open(object: object, flush: number): ZlibEngine | undefined {
    return isZlibObject(object) ? new ZlibEngine(object, flush) : undefined;
  }

  /** Decompresses source bytes from `sourceStart` on to the target from `targetStart` on. Throws zlib's error. */
  write(source: Uint8Array, sourceStart: number, target: Uint8Array, targetStart: number): Progress {
    const { _handle, _writeState } = this.#object;
    const [sourceBytes, targetBytes] = [source.length - sourceStart, target.length - targetStart];
    _handle.writeSync(this.#flush, source, sourceStart, sourceBytes, target, targetStart, targetBytes);
    if (this.#failure !== undefined) throw this.#failure;
    const [room, left] = [_writeState[0]!, _writeState[1]!];
    if (room > targetBytes || left > sourceBytes) throw new Error('zlib tells more than it was given');
    return { used: sourceBytes - left, made: targetBytes - room, room };
  }

  reset(): void {
    this.#object.reset();
  }

  close(): void {
    this.#object.close();
  }
}

function isZlibObject(object: object): object is ZlibObject {
  const { _handle: handle, _writeState: state, reset, close } = object as Partial<ZlibObject>;
  return (
    typeof handle === 'object' &&
    typeof handle.writeSync === 'function' &&
    typeof handle.onerror === 'function' &&
    state instanceof Uint32Array &&
    state.length === 2 &&
    typeof reset === 'function' &&
    typeof close === 'function'
  );
}
