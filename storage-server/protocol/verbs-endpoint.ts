/**
 * One end of a reliable connected queue pair of RDMA, as both ends tell each other: what `ibv_modify_qp` needs to know of
 * the other side. 28 bytes, laid out in PROTOCOL.md. Every field is checked here, before a library sees it.
 */
import { ProtocolError } from './errors.ts';
import { GID_BYTES } from './limits.ts';

export interface VerbsEndpoint {
  /** Queue pair number, 24 bits; 0 and 1 are never those of a connected one. */
  readonly qpn: number;
  /** The number that its first packet has, 24 bits. */
  readonly psn: number;
  /** Local identifier of the port, 0 on Ethernet. */
  readonly lid: number;
  /** Address of the port, 16 bytes. */
  readonly gid: Uint8Array;
  /** Path MTU as `enum ibv_mtu` numbers it: 1 is 256 bytes, 5 is 4096. */
  readonly mtu: number;
  /** READs that it can have under way, as a requester or as a responder. */
  readonly readsMax: number;
}

const NUMBERS_24_BITS = 2 ** 24;
/** The number of 4096 bytes. */
const MTU_MAX = 5;

/** Writes an endpoint at `at`. Throws FRAME for what decodeEndpoint would refuse. */
export function encodeEndpoint(view: DataView, at: number, endpoint: VerbsEndpoint): void {
  const { qpn, psn, lid, gid, mtu, readsMax } = endpoint;
  if (gid.byteLength !== GID_BYTES) throw new ProtocolError('LENGTH', `a GID of ${gid.byteLength} bytes`);
  checkEndpoint(endpoint);
  view.setUint32(at, qpn, true);
  for (const [i, byte] of gid.entries()) view.setUint8(at + 4 + i, byte);
  view.setUint32(at + 20, psn, true);
  view.setUint16(at + 24, lid, true);
  view.setUint8(at + 26, mtu);
  view.setUint8(at + 27, readsMax);
}

/** Reads an endpoint at `at`; the caller has made sure of the bytes. Throws FRAME for numbers that none can have. */
export function decodeEndpoint(view: DataView, at: number): VerbsEndpoint {
  const endpoint = {
    qpn: view.getUint32(at, true),
    gid: Uint8Array.from({ length: GID_BYTES }, (_, i) => view.getUint8(at + 4 + i)),
    psn: view.getUint32(at + 20, true),
    lid: view.getUint16(at + 24, true),
    mtu: view.getUint8(at + 26),
    readsMax: view.getUint8(at + 27),
  };
  checkEndpoint(endpoint);
  return endpoint;
}

function checkEndpoint({ qpn, psn, lid, gid, mtu, readsMax }: VerbsEndpoint): void {
  const isWhole = [qpn, psn, lid, mtu, readsMax].every(Number.isInteger);
  if (!isWhole || qpn < 2 || qpn >= NUMBERS_24_BITS) throw new ProtocolError('FRAME', `queue pair number ${qpn}`);
  if (psn < 0 || psn >= NUMBERS_24_BITS) throw new ProtocolError('FRAME', `packet sequence number ${psn}`);
  if (mtu < 1 || mtu > MTU_MAX) throw new ProtocolError('FRAME', `path MTU number ${mtu}`);
  if (readsMax < 1 || readsMax > 255) throw new ProtocolError('FRAME', `${readsMax} READs under way`);
  if (lid < 0 || lid > 0xffff) throw new ProtocolError('FRAME', `LID ${lid}`);
  if (lid === 0 && gid.every((byte) => byte === 0)) throw new ProtocolError('FRAME', 'a port without LID and GID');
}
