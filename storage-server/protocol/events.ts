/** Asynchronous events: what a server tells without being asked. Layouts are in PROTOCOL.md. */
import { crc32 } from 'node:zlib';
import { ProtocolError } from './errors.ts';
import { FRAME_KIND, FRAME_MAGIC } from './frames.ts';
import { FRAME_HEADER_BYTES, GENERATION_BYTES, GENERATION_EVENT_BYTES } from './limits.ts';
import { readU64, viewOf, writeU64 } from './number.ts';

/** Numbers of events: they stand where other frames have a status. */
export const EVENT = {
  /** Another region is served from now on. */
  GENERATION: 1,
  /** The answer to a VERBS request; see verbs-messages.ts. */
  VERBS: 2,
  /** Where and under which key the next generation lies for READs over RDMA. */
  VERBS_REGION: 3,
} as const;

/** What a client has to know to read a region. */
export interface ServedGeneration {
  readonly generation: Uint8Array;
  readonly rkey: number;
  readonly regionLength: number;
}

/** The whole frame that tells of a new generation; `checksum` as it was granted. */
export function encodeGenerationEvent(served: ServedGeneration, checksum: boolean): Uint8Array {
  if (served.generation.byteLength !== GENERATION_BYTES) {
    throw new ProtocolError('LENGTH', `a generation of ${served.generation.byteLength} bytes`);
  }
  const bytes = new Uint8Array(FRAME_HEADER_BYTES + GENERATION_EVENT_BYTES);
  const view = viewOf(bytes);
  const payloadAt = FRAME_HEADER_BYTES;
  bytes.set(served.generation, payloadAt);
  view.setUint32(payloadAt + 16, served.rkey, true);
  writeU64(view, payloadAt + 24, served.regionLength, 'region length');
  view.setUint16(0, FRAME_MAGIC, true);
  view.setUint8(2, FRAME_KIND.EVENT);
  view.setUint32(4, GENERATION_EVENT_BYTES, true);
  view.setUint32(20, EVENT.GENERATION, true);
  view.setUint32(24, checksum ? crc32(bytes.subarray(payloadAt)) : 0, true);
  return bytes;
}

/** The payload of the event of a new generation. Throws LENGTH, FRAME or NUMBER. */
export function decodeGenerationEvent(payload: Uint8Array): ServedGeneration {
  if (payload.byteLength !== GENERATION_EVENT_BYTES) {
    throw new ProtocolError('LENGTH', `the event of a generation has ${payload.byteLength} bytes`);
  }
  const view = viewOf(payload);
  if (view.getUint32(20, true) !== 0) throw new ProtocolError('FRAME', 'reserved field of an event is not zero');
  return {
    generation: payload.slice(0, GENERATION_BYTES),
    rkey: view.getUint32(16, true),
    regionLength: readU64(view, 24, 'region length'),
  };
}
