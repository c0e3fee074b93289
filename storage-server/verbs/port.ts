/**
 * Which port of a device is used, and under which of its addresses: the first active port; on Ethernet an address of RoCE
 * v2 that is that of an IPv4 network, else any of RoCE v2.
 */
import { GID_BYTES } from '../protocol/index.ts';
import { VerbsError } from './errors.ts';
import { GID_ENTRY, GID_TYPE, LINK_LAYER, MTU_LARGEST, PORT, PORT_ACTIVE, ROOM_BYTES } from './layouts.ts';
import type { VerbsLibrary } from './library.ts';
import { GID_ENTRIES_MAX } from './limits.ts';
import type { DeviceFacts } from './verbs.ts';

export interface DevicePort {
  readonly number: number;
  readonly link: DeviceFacts['link'];
  readonly lid: number;
  /** `enum ibv_mtu` */
  readonly mtu: number;
  readonly messageBytesMax: number;
  readonly gid: Uint8Array;
  readonly gidIndex: number;
  readonly gidKind: DeviceFacts['gidKind'];
}

interface Gid {
  readonly bytes: Uint8Array;
  readonly index: number;
  readonly port: number;
  readonly type: number;
}

/** Throws VerbsError NO_PORT, or LAYOUT for what can't be a port. */
export function choosePort(library: VerbsLibrary, context: bigint, name: string, ports: number): DevicePort {
  const gids = queryGids(library, context);
  const why: string[] = [];
  for (let number = 1; number <= ports; number++) {
    const bytes = new Uint8Array(ROOM_BYTES);
    const errno = library.queryPort(context, number, bytes);
    const struct = new DataView(bytes.buffer);
    const state = struct.getInt32(PORT.state, true);
    if (errno !== 0 || state !== PORT_ACTIVE) {
      why.push(`port ${number} is not active${errno === 0 ? '' : ` (errno ${errno})`}`);
      continue;
    }
    const layer = struct.getUint8(PORT.linkLayer);
    const mtu = struct.getInt32(PORT.activeMtu, true);
    const messageBytesMax = struct.getUint32(PORT.messageBytesMax, true);
    const isEthernet = layer === LINK_LAYER.ETHERNET;
    if ((layer !== LINK_LAYER.INFINIBAND && !isEthernet) || mtu < 1 || mtu > MTU_LARGEST || messageBytesMax < 4096) {
      throw new VerbsError('LAYOUT', `the installed libibverbs lays out struct ibv_port_attr in another way`);
    }
    const gid = chooseGid(
      gids.filter((one) => one.port === number),
      isEthernet,
    );
    if (gid === undefined) {
      why.push(`port ${number} has no address: is its network interface up, with an IP address?`);
      continue;
    }
    return {
      number,
      link: isEthernet ? 'Ethernet' : 'InfiniBand',
      lid: struct.getUint16(PORT.lid, true),
      mtu,
      messageBytesMax,
      gid: gid.bytes,
      gidIndex: gid.index,
      gidKind: gidKind(gid, isEthernet),
    };
  }
  throw new VerbsError('NO_PORT', `${name}: ${why.join('; ')}`);
}

function chooseGid(gids: readonly Gid[], isEthernet: boolean): Gid | undefined {
  if (!isEthernet) return gids[0];
  const v2 = gids.filter(({ type }) => type === GID_TYPE.ROCE_V2);
  return v2.find(({ bytes }) => isMappedIPv4(bytes)) ?? v2[0] ?? gids[0];
}

function gidKind({ type }: Gid, isEthernet: boolean): DeviceFacts['gidKind'] {
  if (type === GID_TYPE.ROCE_V2) return 'RoCE v2';
  return isEthernet ? 'RoCE v1' : 'IB';
}

export function isMappedIPv4(gid: Uint8Array): boolean {
  return gid.subarray(0, 10).every((byte) => byte === 0) && gid[10] === 0xff && gid[11] === 0xff;
}

function queryGids(library: VerbsLibrary, context: bigint): Gid[] {
  const entries = new Uint8Array(GID_ENTRIES_MAX * GID_ENTRY.bytes);
  const count = Math.min(GID_ENTRIES_MAX, library.queryGids(context, entries, GID_ENTRIES_MAX, GID_ENTRY.bytes));
  const struct = new DataView(entries.buffer);
  const gids: Gid[] = [];
  for (let at = 0; at < count * GID_ENTRY.bytes; at += GID_ENTRY.bytes) {
    const bytes = entries.slice(at + GID_ENTRY.gid, at + GID_ENTRY.gid + GID_BYTES);
    const index = struct.getUint32(at + GID_ENTRY.index, true);
    // The index is one byte in the attributes of a queue pair.
    if (index > 255 || bytes.every((byte) => byte === 0)) continue;
    gids.push({
      bytes,
      index,
      port: struct.getUint32(at + GID_ENTRY.port, true),
      type: struct.getUint32(at + GID_ENTRY.type, true),
    });
  }
  return gids;
}
