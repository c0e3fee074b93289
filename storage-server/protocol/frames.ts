/**
 * Frames after the handshake: 32-byte requests to the server, 32-byte headers with a payload from it. Layouts are in
 * PROTOCOL.md. Encoders write into a given place, decoders read from one, so that neither end allocates for a frame.
 */
import { ProtocolError } from './errors.ts';
import { EVENT_BYTES_MAX, FRAME_HEADER_BYTES, PAYLOAD_BYTES_MAX, REASON_BYTES_MAX, REQUEST_BYTES } from './limits.ts';
import { readU64, viewOf, writeU64 } from './number.ts';
import { statusName, WC } from './status.ts';
import { decodeEndpoint, type VerbsEndpoint } from './verbs-endpoint.ts';

/** "QR": a request follows. */
export const REQUEST_MAGIC = 0x5251;

/** "QF": a frame from the server follows. */
export const FRAME_MAGIC = 0x4651;

export const OPCODE = {
  READ: 1,
  /** The client posts nothing more; the server answers what it has, says CLOSED and ends the connection. */
  CLOSE: 2,
  /** The client's end of a queue pair of RDMA, for READs that do not come over this connection; see verbs-messages.ts. */
  VERBS: 3,
} as const;

export const FRAME_KIND = {
  /** Bytes of a READ, and with LAST its completion. */
  PAYLOAD: 1,
  /** Asynchronous event; a client skips the payload of those that it does not know. */
  EVENT: 2,
  /** The server ends this connection; requests without a completion were not served. */
  CLOSED: 3,
} as const;

/** Flag bit: this frame completes its READ. */
const FRAME_LAST = 1;

/**
 * Flag bit of an error frame: what was asked for was there once. With REM_ACCESS_ERR the rkey is that of a region that
 * was replaced, with REM_OP_ERR the file is not the version any more that the generation promises.
 */
const FRAME_STALE = 2;

export interface Request {
  opcode: number;
  rkey: number;
  /** The wr_id as two halves: the server only hands it back. */
  wrLow: number;
  wrHigh: number;
  /** NaN if the address is beyond 2^53, which is outside every region. */
  address: number;
  length: number;
  /** Of a VERBS request: all other fields but the opcode are 0. */
  verbs?: VerbsEndpoint;
}

export interface FrameHeader {
  kind: number;
  last: boolean;
  stale: boolean;
  payloadBytes: number;
  wrId: number;
  /** Where in the READ this payload starts. */
  offset: number;
  status: number;
  crc: number;
}

/** Writes a READ request at `at`. */
export function encodeRead(
  view: DataView,
  at: number,
  read: { wrId: number; rkey: number; address: number; length: number },
): void {
  view.setUint16(at, REQUEST_MAGIC, true);
  view.setUint8(at + 2, OPCODE.READ);
  view.setUint8(at + 3, 0);
  view.setUint32(at + 4, read.rkey, true);
  writeU64(view, at + 8, read.wrId, 'wr_id');
  writeU64(view, at + 16, read.address, 'address');
  view.setUint32(at + 24, read.length, true);
  view.setUint32(at + 28, 0, true);
}

export function encodeClose(): Uint8Array {
  const bytes = new Uint8Array(REQUEST_BYTES);
  const view = viewOf(bytes);
  view.setUint16(0, REQUEST_MAGIC, true);
  view.setUint8(2, OPCODE.CLOSE);
  return bytes;
}

/**
 * Decodes a request at `at`; the caller has made sure of 32 bytes. Throws MAGIC or FRAME when the stream is out of
 * step; what the opcode, the key and the range mean is the responder's business.
 */
export function decodeRequest(view: DataView, at: number): Request {
  if (view.getUint16(at, true) !== REQUEST_MAGIC) throw new ProtocolError('MAGIC', 'request without the magic');
  if (view.getUint8(at + 2) === OPCODE.VERBS && view.getUint8(at + 3) === 0) {
    const verbs = decodeEndpoint(view, at + 4);
    return { opcode: OPCODE.VERBS, rkey: 0, wrLow: 0, wrHigh: 0, address: 0, length: 0, verbs };
  }
  if (view.getUint8(at + 3) !== 0 || view.getUint32(at + 28, true) !== 0) {
    throw new ProtocolError('FRAME', 'reserved field of a request is not zero');
  }
  if (view.getUint8(at + 2) === OPCODE.CLOSE && !isZero(view, at + 4, at + 28)) {
    throw new ProtocolError('FRAME', 'field of a CLOSE is not zero');
  }
  const addressHigh = view.getUint32(at + 20, true);
  return {
    opcode: view.getUint8(at + 2),
    rkey: view.getUint32(at + 4, true),
    wrLow: view.getUint32(at + 8, true),
    wrHigh: view.getUint32(at + 12, true),
    address: addressHigh > 0x1f_ffff ? Number.NaN : addressHigh * 0x1_0000_0000 + view.getUint32(at + 16, true),
    length: view.getUint32(at + 24, true),
  };
}

/** Whether bytes [start, end), a multiple of 4, are zero. */
function isZero(view: DataView, start: number, end: number): boolean {
  for (let at = start; at < end; at += 4) if (view.getUint32(at, true) !== 0) return false;
  return true;
}

/** Writes the header of a payload frame at `at`. */
export function encodePayloadHeader(
  view: DataView,
  at: number,
  frame: {
    last: boolean;
    stale?: boolean;
    payloadBytes: number;
    wrLow: number;
    wrHigh: number;
    offset: number;
    status: number;
    crc: number;
  },
): void {
  view.setUint16(at, FRAME_MAGIC, true);
  view.setUint8(at + 2, FRAME_KIND.PAYLOAD);
  view.setUint8(at + 3, (frame.last ? FRAME_LAST : 0) | (frame.stale === true ? FRAME_STALE : 0));
  view.setUint32(at + 4, frame.payloadBytes, true);
  view.setUint32(at + 8, frame.wrLow, true);
  view.setUint32(at + 12, frame.wrHigh, true);
  view.setUint32(at + 16, frame.offset, true);
  view.setUint32(at + 20, frame.status, true);
  view.setUint32(at + 24, frame.crc, true);
  view.setUint32(at + 28, 0, true);
}

export function encodeClosed(): Uint8Array {
  const bytes = new Uint8Array(FRAME_HEADER_BYTES);
  const view = viewOf(bytes);
  view.setUint16(0, FRAME_MAGIC, true);
  view.setUint8(2, FRAME_KIND.CLOSED);
  return bytes;
}

/**
 * Decodes a frame header at `at`; the caller has made sure of 32 bytes. Throws MAGIC, FRAME, LENGTH or NUMBER. Whether
 * the frame answers a request that was made is the queue pair's business.
 */
export function decodeFrameHeader(view: DataView, at: number): FrameHeader {
  if (view.getUint16(at, true) !== FRAME_MAGIC) throw new ProtocolError('MAGIC', 'frame without the magic');
  const kind = view.getUint8(at + 2);
  const flags = view.getUint8(at + 3);
  const payloadBytes = view.getUint32(at + 4, true);
  const status = view.getUint32(at + 20, true);
  const header = {
    kind,
    last: (flags & FRAME_LAST) !== 0,
    stale: (flags & FRAME_STALE) !== 0,
    payloadBytes,
    wrId: readU64(view, at + 8, 'wr_id'),
    offset: view.getUint32(at + 16, true),
    status,
    crc: view.getUint32(at + 24, true),
  };
  if ((flags & ~(FRAME_LAST | FRAME_STALE)) !== 0) throw new ProtocolError('FRAME', `unknown frame flags ${flags}`);
  if (view.getUint32(at + 28, true) !== 0) throw new ProtocolError('FRAME', 'reserved field of a frame is not zero');
  if (payloadBytes > frameBytesMax(kind, status)) {
    throw new ProtocolError('LENGTH', `frame of kind ${kind} with ${payloadBytes} bytes`);
  }
  if (header.stale && !(kind === FRAME_KIND.PAYLOAD && (status === WC.REM_ACCESS_ERR || status === WC.REM_OP_ERR))) {
    throw new ProtocolError('FRAME', `stale in a frame of kind ${kind} with status ${status}`);
  }
  if (kind === FRAME_KIND.PAYLOAD) {
    if (statusName(status) === undefined) throw new ProtocolError('FRAME', `unknown status ${status}`);
    if (status !== WC.SUCCESS && !header.last) throw new ProtocolError('FRAME', 'an error that completes nothing');
    if (status === WC.SUCCESS && payloadBytes === 0 && !header.last) {
      throw new ProtocolError('FRAME', 'an empty frame that completes nothing');
    }
  }
  return header;
}

function frameBytesMax(kind: number, status: number): number {
  switch (kind) {
    case FRAME_KIND.PAYLOAD:
      return status === WC.SUCCESS ? PAYLOAD_BYTES_MAX : REASON_BYTES_MAX;
    case FRAME_KIND.EVENT:
      return EVENT_BYTES_MAX;
    case FRAME_KIND.CLOSED:
      return 0;
    default:
      throw new ProtocolError('FRAME', `unknown frame kind ${kind}`);
  }
}
