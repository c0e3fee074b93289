/**
 * Memory for copies of what a reply waits with until the rest of it is there. It is used again at once: a fresh one for
 * each reply would be garbage of a MiB a read, which nobody collects in time.
 */
import { COPIES_KEPT_MAX, COPY_BYTES } from '../limits.ts';

export class Copies {
  readonly #spare: ArrayBuffer[] = [];

  /** The bytes of all views, one after the other; to be given back. */
  copy(views: readonly Uint8Array[]): Uint8Array {
    const length = views.reduce((total, view) => total + view.byteLength, 0);
    const buffer = length <= COPY_BYTES ? this.#spare.pop() : undefined;
    const bytes = new Uint8Array(buffer ?? new ArrayBuffer(Math.max(length, COPY_BYTES)), 0, length);
    let at = 0;
    for (const view of views) {
      bytes.set(view, at);
      at += view.byteLength;
    }
    return bytes;
  }

  /** Nobody looks at a copy any more. */
  giveBack({ buffer }: Uint8Array<ArrayBufferLike>): void {
    if (this.#spare.length < COPIES_KEPT_MAX && buffer.byteLength === COPY_BYTES) {
      this.#spare.push(buffer as ArrayBuffer);
    }
  }
}
