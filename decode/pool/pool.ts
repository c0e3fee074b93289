/**
 * The pool: one shared WebAssembly.Memory in which compressed input, scratch and decoded output live, cut into slabs
 * that start on 4 KiB borders (so on 64-byte lines). Every thread attaches to the same memory; the allocator's state
 * (a lock, a bitmap of blocks, counters) lies in that memory, so that any thread allocates without a message.
 * The memory is made at its full size once and never grows: untouched pages cost nothing, views never go stale, and
 * the cap is hard by construction. Small slabs are put lowest, large ones highest, so that the
 * small ones do not cut up the room of the large ones.
 *
 * It does not wait: `allocate` answers 0 when there is no room, and who asked decides what that means.
 */
import { BLOCK_BYTES, LARGE_SLAB_SHARE, MEMORY_BYTES_MAX, MEMORY_BYTES_MIN } from '../limits.ts';

const WASM_PAGE_BYTES = 65536;
/** Below: null page, kernel tables (see kernels/build.ts). The pool's words start here. */
const HEADER_START = 8192;
const LOCK = HEADER_START >>> 2;
const BLOCKS = LOCK + 1;
const USED = LOCK + 2;
const PEAK = LOCK + 3;
const LOWEST = LOCK + 4; // no free block below this one
const ARENA = LOCK + 5; // address of block 0
const BITMAP_START = HEADER_START + 64;

export class Pool {
  readonly memory: WebAssembly.Memory;
  readonly u8: Uint8Array<SharedArrayBuffer>;
  readonly u32: Uint32Array<SharedArrayBuffer>;
  readonly i32: Int32Array<SharedArrayBuffer>;
  /** Bytes that `allocate` can hand out altogether. */
  readonly capacityBytes: number;
  /** Bytes of the last allocation that this thread was refused, for messages. */
  refusedBytes = 0;
  readonly #blocks: number;
  readonly #arena: number;
  /** Slabs of more blocks than this come from the top, so that small ones do not cut up the room for them. */
  readonly #largeBlocks: number;

  private constructor(memory: WebAssembly.Memory) {
    const buffer = memory.buffer as unknown as SharedArrayBuffer;
    this.memory = memory;
    this.u8 = new Uint8Array(buffer);
    this.u32 = new Uint32Array(buffer);
    this.i32 = new Int32Array(buffer);
    this.#blocks = this.u32[BLOCKS]!;
    this.#arena = this.u32[ARENA]!;
    this.capacityBytes = this.#blocks * BLOCK_BYTES;
    this.#largeBlocks = Math.floor(this.#blocks / LARGE_SLAB_SHARE);
  }

  /** A new pool that can hand out `bytes` bytes (rounded down to blocks). Throws RangeError outside the bounds. */
  static create(bytes: number): Pool {
    if (!Number.isSafeInteger(bytes) || bytes < MEMORY_BYTES_MIN || bytes > MEMORY_BYTES_MAX) {
      throw new RangeError(`memory of ${bytes} bytes; expected ${MEMORY_BYTES_MIN} to ${MEMORY_BYTES_MAX}`);
    }
    const blocks = Math.floor(bytes / BLOCK_BYTES);
    const arena = Math.ceil((BITMAP_START + blocks / 8) / WASM_PAGE_BYTES) * WASM_PAGE_BYTES;
    // One page after the arena stays unused: no slab ends at 2^32, so address arithmetic in kernels can't wrap.
    const pages = Math.min(65536, Math.ceil((arena + blocks * BLOCK_BYTES) / WASM_PAGE_BYTES) + 1);
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    const words = new Uint32Array(memory.buffer);
    words[BLOCKS] = blocks;
    words[ARENA] = arena;
    return new Pool(memory);
  }

  /** The pool in a memory made by `create` in another thread. */
  static attach(memory: WebAssembly.Memory): Pool {
    return new Pool(memory);
  }

  get usedBytes(): number {
    return Atomics.load(this.i32, USED) * BLOCK_BYTES;
  }

  get peakBytes(): number {
    return Atomics.load(this.i32, PEAK) * BLOCK_BYTES;
  }

  /** What `allocate(bytes)` takes from the capacity. */
  static footprint(bytes: number): number {
    return Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES;
  }

  /** Address of a slab of at least `bytes` bytes (content undefined), or 0 when no run of free blocks is long enough. */
  allocate(bytes: number): number {
    const want = Math.ceil(bytes / BLOCK_BYTES);
    if (want <= 0 || want > this.#blocks) return this.#refuse(bytes);
    this.#lock();
    try {
      const first = want > this.#largeBlocks ? this.#findLastRun(want) : this.#findRun(want);
      if (first < 0) return this.#refuse(bytes);
      this.#mark(first, want, true);
      const used = Atomics.add(this.i32, USED, want) + want;
      if (used > this.u32[PEAK]!) this.u32[PEAK] = used;
      if (first === this.u32[LOWEST]) this.u32[LOWEST] = first + want;
      return this.#arena + first * BLOCK_BYTES;
    } finally {
      this.#unlock();
    }
  }

  #refuse(bytes: number): number {
    this.refusedBytes = bytes;
    return 0;
  }

  /** Gives back [address, address + bytes), all or a part of a slab that begins on a block's border. */
  free(address: number, bytes: number): void {
    const first = (address - this.#arena) / BLOCK_BYTES;
    const count = Math.ceil(bytes / BLOCK_BYTES);
    if (count === 0) return;
    if (!Number.isInteger(first) || first < 0 || first + count > this.#blocks) {
      throw new RangeError(`free of ${bytes} bytes at ${address}: not a slab of this pool`);
    }
    this.#lock();
    try {
      this.#mark(first, count, false);
      Atomics.sub(this.i32, USED, count);
      if (first < this.u32[LOWEST]!) this.u32[LOWEST] = first;
    } finally {
      this.#unlock();
    }
  }

  /** Gives back the end of a slab of `bytes` bytes that turned out to need only `keep`; returns the new size. */
  shrink(address: number, bytes: number, keep: number): number {
    const oldBlocks = Math.ceil(bytes / BLOCK_BYTES);
    const newBlocks = Math.max(1, Math.ceil(keep / BLOCK_BYTES));
    if (newBlocks >= oldBlocks) return bytes;
    this.free(address + newBlocks * BLOCK_BYTES, (oldBlocks - newBlocks) * BLOCK_BYTES);
    return newBlocks * BLOCK_BYTES;
  }

  #lock(): void {
    while (Atomics.compareExchange(this.i32, LOCK, 0, 1) !== 0) Atomics.wait(this.i32, LOCK, 1, 1);
  }

  #unlock(): void {
    Atomics.store(this.i32, LOCK, 0);
    Atomics.notify(this.i32, LOCK, 1);
  }

  #findRun(want: number): number {
    const { u32 } = this;
    const base = BITMAP_START >>> 2;
    let at = u32[LOWEST]!;
    let run = 0;
    while (at < this.#blocks) {
      const word = u32[base + (at >>> 5)]!;
      if ((at & 31) === 0 && word === 0xffffffff) {
        run = 0;
        at += 32;
        continue;
      }
      if ((at & 31) === 0 && word === 0 && at + 32 <= this.#blocks) {
        at += 32;
        run += 32;
        if (run >= want) return at - run;
        continue;
      }
      run = (word >>> (at & 31)) & 1 ? 0 : run + 1;
      at++;
      if (run >= want) return at - run;
    }
    return -1;
  }

  /** The highest run of `want` free blocks. */
  #findLastRun(want: number): number {
    const { u32 } = this;
    const base = BITMAP_START >>> 2;
    let run = 0;
    for (let at = this.#blocks - 1; at >= 0; ) {
      const word = u32[base + (at >>> 5)]!;
      const whole = (at & 31) === 31;
      if (whole && word === 0xffffffff) {
        run = 0;
        at -= 32;
        continue;
      }
      if (whole && word === 0) {
        at -= 32;
        run += 32;
      } else {
        run = (word >>> (at & 31)) & 1 ? 0 : run + 1;
        at--;
      }
      if (run >= want) return at + 1 + (run - want);
    }
    return -1;
  }

  /** All of it or nothing: who is wrong about one slab must not break those of others. */
  #mark(first: number, count: number, taken: boolean): void {
    const { u32 } = this;
    const base = BITMAP_START >>> 2;
    const end = first + count;
    for (let at = first; at < end; at += 32 - (at & 31)) {
      const old = u32[base + (at >>> 5)]!;
      const clash = (taken ? old : ~old) & wordMask(at, end);
      if (clash !== 0) throw new Error(`pool block ${at}: ${taken ? 'taken twice' : 'freed twice'}`);
    }
    for (let at = first; at < end; at += 32 - (at & 31)) {
      const slot = base + (at >>> 5);
      const mask = wordMask(at, end);
      u32[slot] = taken ? u32[slot]! | mask : u32[slot]! & ~mask;
    }
  }
}

/** The bits of blocks [at, end) in the bitmap's word that holds `at`. */
function wordMask(at: number, end: number): number {
  const low = at & 31;
  const bits = Math.min(32 - low, end - at);
  return bits === 32 ? 0xffffffff : ((1 << bits) - 1) << low;
}
