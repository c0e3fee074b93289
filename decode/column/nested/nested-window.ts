/**
 * The output side of a nested column's decoder: levels of whole rows as they come, values densely beside them. A
 * window ends where a row begins; only a row that is larger than the window makes it grow. When it is finished, its
 * levels become Arrow's offsets and validity, and its values are spread over the nulls.
 */
import { LEVEL_CHUNK_ENTRIES } from '../../limits.ts';
import type { DecodeEnvironment } from '../environment.ts';
import { kernelError } from '../kernel-error.ts';
import type { NestedShape, NestedStructure, Segment, SegmentLayout } from '../spec.ts';
import type { ValueTarget } from '../values/page-values.ts';

interface Slab {
  readonly address: number;
  readonly bytes: number;
}

/** Levels that were decoded beyond the window's last row, for the next one. */
export interface Overhang {
  readonly repetition: Uint8Array;
  readonly definition: Uint8Array;
}

export interface NestedWindowShape {
  readonly nested: NestedShape;
  readonly layout: SegmentLayout;
  /** Bytes of a value; 1 for bits, 4 for offsets. */
  readonly width: number;
  readonly maxDefinitionLevel: number;
  readonly rowsMax: number;
  /** Entries after which it ends at the next row. */
  readonly entriesMax: number;
  readonly dataBytes: number;
}

const align64 = (bytes: number): number => Math.ceil(bytes / 64) * 64;

export class NestedWindow {
  readonly shape: NestedWindowShape;
  target: ValueTarget;
  /** Entries whose levels are there; of these, the first `accepted` belong to the window's rows. */
  decoded = 0;
  accepted = 0;
  rows = 0;
  /** Values that the accepted entries have. */
  valid = 0;
  /** No further row fits. */
  closed = false;
  readonly #environment: DecodeEnvironment;
  #capacity: number;
  #levels: Slab;
  #values: Slab;
  #data: Slab;

  private constructor(environment: DecodeEnvironment, shape: NestedWindowShape, capacity: number, slabs: Slab[]) {
    this.#environment = environment;
    this.shape = shape;
    this.#capacity = capacity;
    [this.#levels, this.#values, this.#data] = slabs as [Slab, Slab, Slab];
    this.target = this.#makeTarget(0);
    if (shape.layout === 'bytes') environment.pool.u32[this.#values.address >>> 2] = 0;
  }

  /** An empty window; undefined when the pool has no room now. */
  static open(environment: DecodeEnvironment, shape: NestedWindowShape): NestedWindow | undefined {
    const capacity = shape.entriesMax + LEVEL_CHUNK_ENTRIES;
    const slabs = allocateAll(environment, [capacity * 2, valueBytes(shape, capacity), shape.dataBytes]);
    return slabs === undefined ? undefined : new NestedWindow(environment, shape, capacity, slabs);
  }

  #makeTarget(dense: number): ValueTarget {
    const { address: dataStart, bytes } = this.#data;
    return { values: this.#values.address, dataStart, dataEnd: dataStart + bytes, dense };
  }

  /** Address of the repetition levels; 0 when they are all 0. */
  get repetition(): number {
    return this.shape.nested.maxRepetitionLevel === 0 ? 0 : this.#levels.address;
  }

  get definition(): number {
    return this.#levels.address + this.#capacity;
  }

  get room(): number {
    return this.#capacity - this.decoded;
  }

  /** Twice the room for entries; false when the pool has none now. Addresses change. */
  grow(): boolean {
    const { pool } = this.#environment;
    const capacity = this.#capacity * 2;
    const slabs = allocateAll(this.#environment, [capacity * 2, valueBytes(this.shape, capacity)]);
    if (slabs === undefined) return false;
    const [levels, values] = slabs as [Slab, Slab];
    const { u8 } = pool;
    u8.copyWithin(levels.address, this.#levels.address, this.#levels.address + this.decoded);
    u8.copyWithin(levels.address + capacity, this.definition, this.definition + this.decoded);
    const used = usedBytes(this.shape, this.target.dense);
    u8.copyWithin(values.address, this.#values.address, this.#values.address + used);
    pool.free(this.#levels.address, this.#levels.bytes);
    pool.free(this.#values.address, this.#values.bytes);
    this.#levels = levels;
    this.#values = values;
    this.#capacity = capacity;
    this.target = this.#makeTarget(this.target.dense);
    return true;
  }

  /** Room for at least `bytes` more data; false when the pool has none now. Addresses change. */
  growData(bytes: number): boolean {
    const { pool } = this.#environment;
    const used = this.#dataUsed();
    const slabs = allocateAll(this.#environment, [Math.max(this.#data.bytes * 2, used + bytes)]);
    if (slabs === undefined) return false;
    const data = slabs[0]!;
    pool.u8.copyWithin(data.address, this.#data.address, this.#data.address + used);
    if (this.#data.bytes > 0) pool.free(this.#data.address, this.#data.bytes);
    this.#data = data;
    this.target = this.#makeTarget(this.target.dense);
    return true;
  }

  #dataUsed(): number {
    if (this.shape.layout !== 'bytes') return 0;
    return this.#environment.pool.u32[(this.#values.address >>> 2) + this.target.dense]!;
  }

  /** Levels that were decoded beyond its rows. */
  overhang(): Overhang | undefined {
    if (this.accepted === this.decoded) return undefined;
    const { u8 } = this.#environment.pool;
    const slice = (address: number): Uint8Array =>
      address === 0 ? new Uint8Array(0) : u8.slice(address + this.accepted, address + this.decoded);
    return { repetition: slice(this.repetition), definition: slice(this.definition) };
  }

  /** Takes the levels that the window before left over, as decoded and not accepted. */
  accept(overhang: Overhang): void {
    const { u8 } = this.#environment.pool;
    if (this.repetition !== 0) u8.set(overhang.repetition, this.repetition);
    u8.set(overhang.definition, this.definition);
    this.decoded = overhang.definition.length;
  }

  /** Data bounds for UTF-8 validation: dense offsets and data. */
  get text(): { readonly offsets: number; readonly count: number; readonly data: number; readonly dataEnd: number } {
    const data = this.#data.address;
    return { offsets: this.#values.address, count: this.target.dense, data, dataEnd: data + this.#dataUsed() };
  }

  /** The segment of the accepted entries; undefined when the pool has no room now. Takes the window's slabs. */
  finish(): Segment | undefined {
    const { kernels, pool } = this.#environment;
    const { shape, accepted: n, repetition: rep, definition: def } = this;
    const { nodes, leafSlot } = shape.nested;
    const counts = nodes.map((node) => kernels.countSlots(rep, def, n, node.repetition, node.slot));
    const slots = kernels.countSlots(rep, def, n, 255, leafSlot);
    const nullable = leafSlot < shape.maxDefinitionLevel;
    let bytes = nullable ? bitmapBytes(slots) : 0;
    for (const [k, node] of nodes.entries())
      bytes += nodeBytes(node.kind === 'list', node.valid > node.slot, counts[k]!);
    const structureBytes = Math.max(1, bytes);
    const structure = pool.allocate(structureBytes);
    if (structure === 0) return undefined;
    try {
      return this.#fill(counts, slots, nullable, { address: structure, bytes: structureBytes });
    } catch (error) {
      pool.free(structure, structureBytes);
      throw error;
    }
  }

  /** Writes Arrow's structure to its slab and spreads the values. */
  #fill(counts: readonly number[], slots: number, nullable: boolean, slab: Slab): Segment {
    const { kernels } = this.#environment;
    const { shape, accepted: n, repetition: rep, definition: def } = this;
    const { nodes, leafSlot } = shape.nested;
    let at = slab.address;
    const made = nodes.map((node, k) => {
      const nodeSlots = counts[k]!;
      let validity = 0;
      let offsets = 0;
      let nullCount = 0;
      if (node.valid > node.slot) {
        validity = at;
        at += bitmapBytes(nodeSlots);
        nullCount = nodeSlots - kernels.nestedValidity(rep, def, n, node.repetition, node.slot, node.valid, validity);
      }
      if (node.kind === 'list') {
        offsets = at;
        at += align64((nodeSlots + 1) * 4);
        const { repetition, slot, element } = node;
        const code = kernels.nestedOffsets(rep, def, n, repetition, slot, repetition + 1, element, offsets);
        if (code < 0) throw kernelError('LEVELS', code, 'repetition levels');
      }
      return { slots: nodeSlots, nullCount, validity: nullCount > 0 ? validity : 0, offsets };
    });
    let validity = 0;
    const nullCount = slots - this.target.dense;
    if (nullable) {
      validity = at;
      kernels.nestedValidity(rep, def, n, 255, leafSlot, shape.maxDefinitionLevel, validity);
      if (nullCount > 0) this.#spread(validity, slots);
    }
    return this.#segment(
      { slots, nodes: made, slabs: [slab] },
      {
        nullCount,
        validity: nullCount > 0 ? validity : 0,
      },
    );
  }

  #segment(structure: NestedStructure, leaf: { nullCount: number; validity: number }): Segment {
    const { pool } = this.#environment;
    const { shape } = this;
    pool.free(this.#levels.address, this.#levels.bytes);
    const dataBytes = this.#dataUsedBy(structure.slots);
    const slabBytes = pool.shrink(this.#values.address, this.#values.bytes, usedBytes(shape, structure.slots));
    const slabs = [...structure.slabs];
    if (this.#data.bytes > 0)
      slabs.push({ ...this.#data, bytes: pool.shrink(this.#data.address, this.#data.bytes, dataBytes) });
    return {
      rows: this.rows,
      ...leaf,
      layout: shape.layout,
      width: shape.width,
      slab: this.#values.address,
      slabBytes,
      values: this.#values.address,
      data: shape.layout === 'bytes' ? this.#data.address : 0,
      dataBytes,
      nested: { ...structure, slabs },
    };
  }

  #dataUsedBy(slots: number): number {
    return this.shape.layout === 'bytes' ? this.#environment.pool.u32[(this.#values.address >>> 2) + slots]! : 0;
  }

  #spread(validity: number, slots: number): void {
    const { kernels: k } = this.#environment;
    const { values, dense } = this.target;
    const { layout, width } = this.shape;
    let code: number;
    if (layout === 'bits') code = k.spreadBits(values, validity, slots, dense);
    else if (layout === 'bytes') code = k.spreadOffsets(values, validity, slots, dense);
    else if (width === 8) code = k.spread8(values, validity, slots, dense);
    else if (width === 4) code = k.spread4(values, validity, slots, dense);
    else code = k.spreadWide(values, validity, slots, dense, width);
    if (code < 0) throw kernelError('LEVELS', code, 'validity');
  }

  /** Gives the slabs back without a segment. */
  discard(): void {
    for (const { address, bytes } of [this.#levels, this.#values, this.#data]) {
      if (bytes > 0) this.#environment.pool.free(address, bytes);
    }
  }
}

function allocateAll({ pool }: DecodeEnvironment, sizes: readonly number[]): Slab[] | undefined {
  const slabs: Slab[] = [];
  for (const bytes of sizes) {
    const address = bytes === 0 ? 0 : pool.allocate(bytes);
    if (bytes > 0 && address === 0) {
      for (const slab of slabs) if (slab.bytes > 0) pool.free(slab.address, slab.bytes);
      return undefined;
    }
    slabs.push({ address, bytes });
  }
  return slabs;
}

const bitmapBytes = (slots: number): number => align64(Math.ceil(slots / 64) * 8);

function nodeBytes(list: boolean, nullable: boolean, slots: number): number {
  return (nullable ? bitmapBytes(slots) : 0) + (list ? align64((slots + 1) * 4) : 0);
}

function usedBytes({ layout, width }: NestedWindowShape, count: number): number {
  if (layout === 'bits') return Math.ceil(count / 64) * 8;
  return layout === 'bytes' ? (count + 1) * 4 : count * width;
}

function valueBytes(shape: NestedWindowShape, capacity: number): number {
  return Math.max(64, align64(usedBytes(shape, capacity)));
}
