/**
 * What both ends say over the connection to set up READs over RDMA beside it: the client's VERBS request, the server's
 * answer, and the place of the next generation. Layouts are in PROTOCOL.md. After the answer READs go from device to
 * device; the connection carries events, and its end is the end of the queue pair.
 */
import { crc32 } from 'node:zlib';
import { ProtocolError } from './errors.ts';
import { EVENT } from './events.ts';
import { FRAME_KIND, FRAME_MAGIC, OPCODE, REQUEST_MAGIC } from './frames.ts';
import { encodeReason } from './handshake.ts';
import {
  FRAME_HEADER_BYTES,
  GENERATION_BYTES,
  REASON_BYTES_MAX,
  REQUEST_BYTES,
  VERBS_ANSWER_BYTES,
  VERBS_ENDPOINT_BYTES,
  VERBS_REGION_BYTES,
} from './limits.ts';
import { addExact, readU64, viewOf, writeU64 } from './number.ts';
import { decodeEndpoint, encodeEndpoint, type VerbsEndpoint } from './verbs-endpoint.ts';

/** Where a generation lies for READs over RDMA. */
export interface VerbsRegion {
  readonly generation: Uint8Array;
  /** Of the memory's registration; it has nothing to do with the key of READs over the connection. */
  readonly rkey: number;
  /** Address of the region's first byte at the server. */
  readonly address: number;
  /** Bytes; the region's length. */
  readonly length: number;
}

export interface VerbsAccepted {
  readonly endpoint: VerbsEndpoint;
  readonly region: VerbsRegion;
}

export interface VerbsRefused {
  readonly reason: string;
}

const ACCEPTED = 0;
const REFUSED = 1;

/** The client's request. */
export function encodeVerbsRequest(endpoint: VerbsEndpoint): Uint8Array {
  const bytes = new Uint8Array(REQUEST_BYTES);
  const view = viewOf(bytes);
  view.setUint16(0, REQUEST_MAGIC, true);
  view.setUint8(2, OPCODE.VERBS);
  encodeEndpoint(view, 4, endpoint);
  return bytes;
}

/** The whole frame of the server's answer; `checksum` as it was granted. */
export function encodeVerbsAnswer(answer: VerbsAccepted | VerbsRefused, checksum: boolean): Uint8Array {
  const text = 'reason' in answer ? encodeReason(answer.reason) : new Uint8Array(0);
  const payload = new Uint8Array(VERBS_ANSWER_BYTES + text.byteLength);
  const view = viewOf(payload);
  view.setUint16(0, 'reason' in answer ? REFUSED : ACCEPTED, true);
  view.setUint16(2, text.byteLength, true);
  if (!('reason' in answer)) {
    encodeEndpoint(view, 4, answer.endpoint);
    encodeRegion(payload, 4 + VERBS_ENDPOINT_BYTES, answer.region);
  }
  payload.set(text, VERBS_ANSWER_BYTES);
  return eventFrame(EVENT.VERBS, payload, checksum);
}

/** The payload of the server's answer. Throws LENGTH, FRAME or NUMBER. */
export function decodeVerbsAnswer(payload: Uint8Array): VerbsAccepted | VerbsRefused {
  if (payload.byteLength < VERBS_ANSWER_BYTES) {
    throw new ProtocolError('LENGTH', `an answer about RDMA of ${payload.byteLength} bytes`);
  }
  const view = viewOf(payload);
  const verdict = view.getUint16(0, true);
  const reasonBytes = view.getUint16(2, true);
  if (reasonBytes > REASON_BYTES_MAX || payload.byteLength !== VERBS_ANSWER_BYTES + reasonBytes) {
    throw new ProtocolError(
      'LENGTH',
      `an answer about RDMA of ${payload.byteLength} bytes with ${reasonBytes} of reason`,
    );
  }
  if (verdict === REFUSED) {
    if (payload.subarray(4, VERBS_ANSWER_BYTES).some((byte) => byte !== 0)) {
      throw new ProtocolError('FRAME', 'a refusal of RDMA with more than a reason');
    }
    return { reason: new TextDecoder().decode(payload.subarray(VERBS_ANSWER_BYTES)) };
  }
  if (verdict !== ACCEPTED || reasonBytes !== 0) throw new ProtocolError('FRAME', `verdict ${verdict} about RDMA`);
  return { endpoint: decodeEndpoint(view, 4), region: decodeRegion(payload, 4 + VERBS_ENDPOINT_BYTES) };
}

/** The whole frame that tells where the next generation lies; it goes in front of the event of that generation. */
export function encodeVerbsRegionEvent(region: VerbsRegion, checksum: boolean): Uint8Array {
  const payload = new Uint8Array(VERBS_REGION_BYTES);
  encodeRegion(payload, 0, region);
  return eventFrame(EVENT.VERBS_REGION, payload, checksum);
}

/** The payload of that event. Throws LENGTH, FRAME or NUMBER. */
export function decodeVerbsRegionEvent(payload: Uint8Array): VerbsRegion {
  if (payload.byteLength !== VERBS_REGION_BYTES) {
    throw new ProtocolError('LENGTH', `the event of a region for RDMA has ${payload.byteLength} bytes`);
  }
  return decodeRegion(payload, 0);
}

function encodeRegion(bytes: Uint8Array, at: number, { generation, rkey, address, length }: VerbsRegion): void {
  if (generation.byteLength !== GENERATION_BYTES) {
    throw new ProtocolError('LENGTH', `a generation of ${generation.byteLength} bytes`);
  }
  const view = viewOf(bytes);
  bytes.set(generation, at);
  view.setUint32(at + 16, rkey, true);
  writeU64(view, at + 24, address, 'address of the region');
  writeU64(view, at + 32, length, 'region length');
}

function decodeRegion(bytes: Uint8Array, at: number): VerbsRegion {
  const view = viewOf(bytes);
  if (view.getUint32(at + 20, true) !== 0) throw new ProtocolError('FRAME', 'reserved field of a region is not zero');
  const address = readU64(view, at + 24, 'address of the region');
  const length = readU64(view, at + 32, 'region length');
  addExact(address, length, 'the end of the region');
  return { generation: bytes.slice(at, at + GENERATION_BYTES), rkey: view.getUint32(at + 16, true), address, length };
}

function eventFrame(event: number, payload: Uint8Array, checksum: boolean): Uint8Array {
  const frame = new Uint8Array(FRAME_HEADER_BYTES + payload.byteLength);
  const view = viewOf(frame);
  view.setUint16(0, FRAME_MAGIC, true);
  view.setUint8(2, FRAME_KIND.EVENT);
  view.setUint32(4, payload.byteLength, true);
  view.setUint32(20, event, true);
  view.setUint32(24, checksum ? crc32(payload) : 0, true);
  frame.set(payload, FRAME_HEADER_BYTES);
  return frame;
}
