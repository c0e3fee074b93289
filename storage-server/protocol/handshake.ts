/**
 * The first message each way on a connection: the client's hello, the server's welcome or refusal. Layouts are in
 * PROTOCOL.md. The first eight bytes of both keep their place in every version, so that versions can refuse each other.
 */
import { ProtocolError } from './errors.ts';
import {
  AUTH_BYTES_MAX,
  GENERATION_BYTES,
  HELLO_BYTES,
  PROTOCOL_VERSION,
  QUEUE_DEPTH_CEILING,
  READ_BYTES_CEILING,
  REASON_BYTES_MAX,
  WELCOME_BYTES,
} from './limits.ts';
import { readU64, viewOf, writeU64 } from './number.ts';
import { REFUSAL, refusalName } from './status.ts';

/** "QNAT" in the order of the bytes. */
export const HANDSHAKE_MAGIC = 0x54414e51;

/** Bit 0 of the flags: a CRC-32 in every payload frame. */
const FLAG_CHECKSUM = 1;

/** Bit 1 of the flags: a client that has a device for RDMA, a server that answers a VERBS request. */
const FLAG_VERBS = 2;

const FLAGS_KNOWN = FLAG_CHECKSUM | FLAG_VERBS;

function encodeFlags({ checksum, verbs = false }: { readonly checksum: boolean; readonly verbs?: boolean }): number {
  return (checksum ? FLAG_CHECKSUM : 0) | (verbs ? FLAG_VERBS : 0);
}

/** `verbs` is only there when it is true. */
function decodeFlags(flags: number): { checksum: boolean; verbs?: true } {
  return { checksum: (flags & FLAG_CHECKSUM) !== 0, ...((flags & FLAG_VERBS) === 0 ? {} : { verbs: true as const }) };
}

export interface Hello {
  readonly version: number;
  readonly checksum: boolean;
  /** The client has a device for RDMA and would rather read through it. */
  readonly verbs?: boolean;
  readonly queueDepth: number;
  readonly readBytesMax: number;
  readonly outstandingMax: number;
  readonly authBytes: number;
}

export interface Welcome {
  readonly checksum: boolean;
  /** The server answers a VERBS request; only when the client has asked for it. */
  readonly verbs?: boolean;
  readonly queueDepth: number;
  readonly readBytesMax: number;
  readonly outstandingMax: number;
  readonly rkey: number;
  readonly regionLength: number;
  readonly generation: Uint8Array;
}

export interface Refused {
  readonly refusal: number;
  /** Bytes of reason text that follow. */
  readonly reasonBytes: number;
}

export function encodeHello(hello: Omit<Hello, 'version' | 'authBytes'>, auth = new Uint8Array(0)): Uint8Array {
  if (auth.byteLength > AUTH_BYTES_MAX) throw new ProtocolError('LENGTH', `authentication of ${auth.byteLength} bytes`);
  const bytes = new Uint8Array(HELLO_BYTES + auth.byteLength);
  const view = viewOf(bytes);
  view.setUint32(0, HANDSHAKE_MAGIC, true);
  view.setUint16(4, PROTOCOL_VERSION, true);
  view.setUint16(6, encodeFlags(hello), true);
  view.setUint32(8, hello.queueDepth, true);
  view.setUint32(12, hello.readBytesMax, true);
  view.setUint32(16, hello.outstandingMax, true);
  view.setUint32(20, auth.byteLength, true);
  bytes.set(auth, HELLO_BYTES);
  return bytes;
}

/** Throws MAGIC when the first bytes of a stream, one or more of them, can't be those of a hello. */
export function checkMagic(bytes: Uint8Array): void {
  for (let i = 0; i < Math.min(bytes.byteLength, 4); i++) {
    if (bytes[i] !== ((HANDSHAKE_MAGIC >>> (8 * i)) & 0xff)) {
      throw new ProtocolError('MAGIC', 'the connection does not begin with the magic');
    }
  }
}

/** Decodes the fixed part of a hello. Throws MAGIC, VERSION, FRAME or LENGTH; VERSION is to be answered with a refusal. */
export function decodeHello(bytes: Uint8Array): Hello {
  const view = exactly(bytes, HELLO_BYTES, 'hello');
  if (view.getUint32(0, true) !== HANDSHAKE_MAGIC) throw new ProtocolError('MAGIC', 'hello without the magic');
  const version = view.getUint16(4, true);
  if (version !== PROTOCOL_VERSION) {
    throw new ProtocolError('VERSION', `protocol version ${version}, this server speaks ${PROTOCOL_VERSION}`);
  }
  const flags = view.getUint16(6, true);
  if ((flags & ~FLAGS_KNOWN) !== 0) throw new ProtocolError('FRAME', `unknown hello flags ${flags}`);
  if (readU64(view, 24, 'reserved field') !== 0)
    throw new ProtocolError('FRAME', 'reserved field of hello is not zero');
  const authBytes = view.getUint32(20, true);
  if (authBytes > AUTH_BYTES_MAX) throw new ProtocolError('LENGTH', `authentication of ${authBytes} bytes`);
  return {
    version,
    ...decodeFlags(flags),
    ...decodeDepths(view),
    authBytes,
  };
}

export function encodeWelcome(welcome: Welcome): Uint8Array {
  if (welcome.generation.byteLength !== GENERATION_BYTES)
    throw new ProtocolError('LENGTH', 'generation is not 16 bytes');
  const bytes = new Uint8Array(WELCOME_BYTES);
  const view = viewOf(bytes);
  view.setUint32(0, HANDSHAKE_MAGIC, true);
  view.setUint16(4, PROTOCOL_VERSION, true);
  view.setUint16(6, REFUSAL.ACCEPTED, true);
  view.setUint32(8, welcome.queueDepth, true);
  view.setUint32(12, welcome.readBytesMax, true);
  view.setUint32(16, welcome.outstandingMax, true);
  view.setUint32(20, welcome.rkey, true);
  writeU64(view, 24, welcome.regionLength, 'region length');
  bytes.set(welcome.generation, 32);
  view.setUint16(48, encodeFlags(welcome), true);
  return bytes;
}

/** A refusal with its reason, cut to what fits. */
export function encodeRefusal(refusal: number, reason: string): Uint8Array {
  const text = encodeReason(reason);
  const bytes = new Uint8Array(WELCOME_BYTES + text.byteLength);
  const view = viewOf(bytes);
  view.setUint32(0, HANDSHAKE_MAGIC, true);
  view.setUint16(4, PROTOCOL_VERSION, true);
  view.setUint16(6, refusal, true);
  view.setUint16(50, text.byteLength, true);
  bytes.set(text, WELCOME_BYTES);
  return bytes;
}

/** Decodes the fixed part of the server's answer. Throws MAGIC, VERSION, FRAME, LENGTH or NUMBER. */
export function decodeWelcome(bytes: Uint8Array): Welcome | Refused {
  const view = exactly(bytes, WELCOME_BYTES, 'welcome');
  if (view.getUint32(0, true) !== HANDSHAKE_MAGIC) throw new ProtocolError('MAGIC', 'not a Qanat storage server');
  if (bytes.subarray(52).some((byte) => byte !== 0)) {
    throw new ProtocolError('FRAME', 'reserved field of welcome is not zero');
  }
  const refusal = view.getUint16(6, true);
  const reasonBytes = view.getUint16(50, true);
  if (reasonBytes > REASON_BYTES_MAX) throw new ProtocolError('LENGTH', `reason of ${reasonBytes} bytes`);
  if (refusal !== REFUSAL.ACCEPTED) {
    if (refusalName(refusal) === undefined) throw new ProtocolError('FRAME', `unknown refusal ${refusal}`);
    return { refusal, reasonBytes };
  }
  const version = view.getUint16(4, true);
  if (version !== PROTOCOL_VERSION) {
    throw new ProtocolError('VERSION', `server accepted with protocol version ${version}, not ${PROTOCOL_VERSION}`);
  }
  const flags = view.getUint16(48, true);
  if ((flags & ~FLAGS_KNOWN) !== 0) throw new ProtocolError('FRAME', `unknown welcome flags ${flags}`);
  if (reasonBytes !== 0) throw new ProtocolError('FRAME', 'welcome with a reason');
  const depths = decodeDepths(view);
  if (!depthsValid(depths)) throw new ProtocolError('FRAME', 'granted depth or READ size is zero or over its ceiling');
  return {
    ...decodeFlags(flags),
    ...depths,
    rkey: view.getUint32(20, true),
    regionLength: readU64(view, 24, 'region length'),
    generation: bytes.slice(32, 32 + GENERATION_BYTES),
  };
}

interface Depths {
  readonly queueDepth: number;
  readonly readBytesMax: number;
  readonly outstandingMax: number;
}

function decodeDepths(view: DataView): Depths {
  return {
    queueDepth: view.getUint32(8, true),
    readBytesMax: view.getUint32(12, true),
    outstandingMax: view.getUint32(16, true),
  };
}

/** Whether what one end wants, or the other grants, lies inside the ceilings. */
export function depthsValid(depths: Depths): boolean {
  return (
    within(depths.queueDepth, QUEUE_DEPTH_CEILING) &&
    within(depths.outstandingMax, QUEUE_DEPTH_CEILING) &&
    within(depths.readBytesMax, READ_BYTES_CEILING)
  );
}

function within(value: number, ceiling: number): boolean {
  return value > 0 && value <= ceiling;
}

/** UTF-8 of a reason, cut at a character boundary to what a frame may carry. */
export function encodeReason(reason: string): Uint8Array {
  const bytes = new Uint8Array(REASON_BYTES_MAX);
  return bytes.subarray(0, new TextEncoder().encodeInto(reason, bytes).written);
}

function exactly(bytes: Uint8Array, length: number, what: string): DataView {
  if (bytes.byteLength !== length) {
    throw new ProtocolError('LENGTH', `${what} of ${bytes.byteLength} bytes instead of ${length}`);
  }
  return viewOf(bytes);
}
