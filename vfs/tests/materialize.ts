/** The decoded view of a file in memory as bytes: what a mount would serve, without mount, threads or prefetch. */
import assert from 'node:assert/strict';
import {
  ChunkDecoder,
  type DecodeEnvironment,
  type FileMetadata,
  freeSegment,
  loadKernels,
  type PlainChunk,
  Pool,
  parseFooter,
  parseTail,
  WINDOW_SLACK_BYTES,
} from '../../decode/index.ts';
import { ChunkImage } from '../decoded/chunk-image.ts';
import { type DecodedLayout, planDecodedFile } from '../decoded/layout.ts';
import { plainChunkSpec } from '../decoded/plain-chunk-spec.ts';

export interface MaterializeOptions {
  readonly chunkBytesMax?: number;
  /** Rows of a window; without it windows are pages, and decoders put values in their places. */
  readonly windowRows?: number;
}

export function layoutOf(file: Uint8Array, chunkBytesMax = 64 << 20): [FileMetadata, DecodedLayout | undefined] {
  const { footerStart, footerLength } = parseTail(file, file.length);
  const footer = file.subarray(footerStart, footerStart + footerLength);
  const metadata = parseFooter(footer, file.length);
  return [metadata, planDecodedFile(metadata, footer, { chunkBytesMax })];
}

/** Undefined when the file passes through as it is. */
export function materialize(file: Uint8Array, options: MaterializeOptions = {}): Uint8Array | undefined {
  const [metadata, layout] = layoutOf(file, options.chunkBytesMax);
  if (layout === undefined) return undefined;
  const pool = Pool.create(256 << 20);
  const environment = { pool, kernels: loadKernels(pool.memory), verifyChecksums: true };
  const out = new Uint8Array(layout.length).fill(0xaa);
  let at = 0;
  for (const section of layout.sections) {
    assert.equal(section.start, at, 'sections have no gaps');
    at += section.length;
    if (section.kind === 'bytes') out.set(section.bytes, section.start);
    else if (section.kind === 'zeros') out.fill(0, section.start, at);
    else if (section.kind === 'passed') {
      out.set(file.subarray(section.from, section.from + section.length), section.start);
    } else out.set(decodeImage(environment, file, metadata, section, options), section.start);
  }
  assert.equal(at, layout.length);
  assert.equal(pool.usedBytes, 0, 'nothing is left in the pool');
  return out;
}

function decodeImage(
  environment: DecodeEnvironment,
  file: Uint8Array,
  metadata: FileMetadata,
  { group, column, pages }: { group: number; column: number; pages: PlainChunk },
  { windowRows }: MaterializeOptions,
): Uint8Array {
  const { pool, kernels } = environment;
  const placed = windowRows === undefined;
  const plain = plainChunkSpec(metadata, group, column, windowRows ?? pages.full.rows);
  const slab = pool.allocate(plain.byteLength);
  pool.u8.set(file.subarray(plain.fileOffset, plain.fileOffset + plain.byteLength), slab);
  const room = pool.allocate(pages.length + 2 * WINDOW_SLACK_BYTES);
  pool.u8.fill(0x55, room, room + pages.length + 2 * WINDOW_SLACK_BYTES);
  const address = room + WINDOW_SLACK_BYTES;
  const image = new ChunkImage(pool, kernels, pages, address);
  const { places } = image;
  const spec = placed && places !== undefined ? { ...plain, place: places } : plain;
  const decoder = new ChunkDecoder(environment, spec);
  decoder.input.add({ address: slab, start: 0, end: plain.byteLength });
  decoder.input.arrived = plain.byteLength;
  for (let result = decoder.step(); result !== 'end'; result = decoder.step()) {
    assert.equal(result, 'segment');
    const segment = decoder.takeSegment();
    image.add(segment);
    freeSegment(pool, segment);
  }
  decoder.close();
  assert.ok(image.isComplete);
  const bytes = pool.u8.slice(address, address + pages.length);
  // nothing but the chunk's own bytes was written for good
  const [before, after] = [
    pool.u8.slice(room, address),
    pool.u8.slice(address + pages.length, address + pages.length + 64),
  ];
  assert.ok(
    before.every((byte) => byte === 0x55),
    'before the image',
  );
  if (!placed)
    assert.ok(
      after.every((byte) => byte === 0x55),
      'after the image',
    );
  pool.free(room, pages.length + 2 * WINDOW_SLACK_BYTES);
  pool.free(slab, plain.byteLength);
  return bytes;
}
