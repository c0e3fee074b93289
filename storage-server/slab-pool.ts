/**
 * Buffers that payloads are read into and sent from, in two sizes. Large ones are shared and limited in number; a small
 * one is there for every connection, so that peers that hold all large ones can't stop the others.
 */
import { FREE_SLABS_KEPT, LARGE_SLAB_BYTES, SMALL_SLAB_BYTES } from './limits.ts';
import { viewOf } from './protocol/index.ts';

export interface Slab {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  readonly large: boolean;
}

export class SlabPool {
  readonly #largeMax: number;
  #largeInUse = 0;
  #smallInUse = 0;
  readonly #freeLarge: Slab[] = [];
  readonly #freeSmall: Slab[] = [];

  constructor(largeMax: number) {
    this.#largeMax = largeMax;
  }

  get largeInUse(): number {
    return this.#largeInUse;
  }

  get smallInUse(): number {
    return this.#smallInUse;
  }

  /** A large slab, or undefined if all are in use. */
  takeLarge(): Slab | undefined {
    if (this.#largeInUse >= this.#largeMax) return undefined;
    this.#largeInUse++;
    return this.#freeLarge.pop() ?? allocate(LARGE_SLAB_BYTES, true);
  }

  /** A small slab; the caller keeps to its share. */
  takeSmall(): Slab {
    this.#smallInUse++;
    return this.#freeSmall.pop() ?? allocate(SMALL_SLAB_BYTES, false);
  }

  /** Takes a slab back that neither storage nor a socket uses any more. */
  give(slab: Slab): void {
    if (slab.large) this.#largeInUse--;
    else this.#smallInUse--;
    const free = slab.large ? this.#freeLarge : this.#freeSmall;
    if (free.length < FREE_SLABS_KEPT) free.push(slab);
  }
}

function allocate(length: number, large: boolean): Slab {
  const bytes = Buffer.allocUnsafeSlow(length);
  return { bytes, view: viewOf(bytes), large };
}
