/** Bytes and state words of a kernel memory for the scalar kernels. */
export class MemoryView {
  readonly memory: WebAssembly.Memory;
  bytes: Uint8Array;
  data: DataView;

  constructor(memory: WebAssembly.Memory) {
    this.memory = memory;
    this.bytes = new Uint8Array(memory.buffer);
    this.data = new DataView(memory.buffer);
  }

  /** A memory that grew has a new buffer; every kernel starts here. */
  fresh(): this {
    const { buffer } = this.memory;
    if (buffer !== this.bytes.buffer) {
      this.bytes = new Uint8Array(buffer);
      this.data = new DataView(buffer);
    }
    return this;
  }

  u32(address: number): number {
    return this.data.getUint32(address, true);
  }

  setU32(address: number, value: number): void {
    this.data.setUint32(address, value, true);
  }

  u64(address: number): bigint {
    return this.data.getBigUint64(address, true);
  }

  setU64(address: number, value: bigint): void {
    this.data.setBigUint64(address, BigInt.asUintN(64, value), true);
  }

  /** Bit `index` of the bitmap at `address`, least significant bit first. */
  bit(address: number, index: number): number {
    return (this.bytes[address + Math.floor(index / 8)]! >> (index % 8)) & 1;
  }
}
