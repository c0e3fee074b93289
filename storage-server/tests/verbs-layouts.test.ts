/**
 * Layouts of libibverbs: offsets against those that the rules of C give for the structures as verbs.h declares them, limits
 * on locked memory, and what is said on a machine without RDMA.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openVerbsDevice, VerbsError } from '../verbs/index.ts';
import * as layouts from '../verbs/layouts.ts';
import { checkLockable, parseLockLimit } from '../verbs/locked-memory.ts';

type CType = 'u8' | 'u16' | 'u32' | 'u64' | 'pointer' | CField[] | readonly [count: number, of: CType];
type CField = readonly [name: string, type: CType];

const SIZES = { u8: 1, u16: 2, u32: 4, u64: 8, pointer: 8 } as const;

function alignOf(type: CType): number {
  if (typeof type === 'string') return SIZES[type];
  if (isArray(type)) return alignOf(type[1]);
  return Math.max(...type.map(([, of]) => alignOf(of)));
}

function isArray(type: Exclude<CType, string>): type is readonly [count: number, of: CType] {
  return typeof type[0] === 'number';
}

const roundUp = (value: number, align: number): number => Math.ceil(value / align) * align;

/** Size of a type, and where its fields lie: `outer.inner` for nested ones. */
function layOut(type: CType, tell: (name: string, at: number) => void = () => {}, at = 0, prefix = ''): number {
  if (typeof type === 'string') return SIZES[type];
  if (isArray(type)) return type[0] * layOut(type[1]);
  let end = 0;
  for (const [name, of] of type) {
    const start = roundUp(end, alignOf(of));
    tell(prefix + name, at + start);
    end = start + layOut(of, tell, at + start, `${prefix}${name}.`);
  }
  return roundUp(end, alignOf(type));
}

const fields = (text: string, type: CType): CField[] => text.split(' ').map((name) => [name, type]);

const CAP = fields('max_send_wr max_recv_wr max_send_sge max_recv_sge max_inline_data', 'u32');
const GRH: CField[] = [
  ['dgid', [2, 'u64']],
  ['flow_label', 'u32'],
  ...fields('sgid_index hop_limit traffic_class', 'u8'),
];
const AH: CField[] = [
  ['grh', GRH],
  ['dlid', 'u16'],
  ...fields('sl src_path_bits static_rate is_global port_num', 'u8'),
];

/** As verbs.h declares them. */
const STRUCTS: Record<string, CField[]> = {
  ibv_mr: [...fields('context pd addr', 'pointer'), ['length', 'u64'], ...fields('handle lkey rkey', 'u32')],
  ibv_cq: [...fields('context channel cq_context', 'pointer'), ...fields('handle cqe', 'u32')],
  ibv_qp: [
    ...fields('context qp_context pd send_cq recv_cq srq', 'pointer'),
    ...fields('handle qp_num state qp_type', 'u32'),
  ],
  ibv_qp_init_attr: [
    ...fields('qp_context send_cq recv_cq srq', 'pointer'),
    ['cap', CAP],
    ...fields('qp_type sq_sig_all', 'u32'),
  ],
  ibv_qp_attr: [
    ...fields('qp_state cur_qp_state path_mtu path_mig_state qkey rq_psn sq_psn dest_qp_num qp_access_flags', 'u32'),
    ['cap', CAP],
    ['ah_attr', AH],
    ['alt_ah_attr', AH],
    ...fields('pkey_index alt_pkey_index', 'u16'),
    ...fields('en_sqd_async_notify sq_draining max_rd_atomic max_dest_rd_atomic min_rnr_timer port_num', 'u8'),
    ...fields('timeout retry_cnt rnr_retry alt_port_num alt_timeout', 'u8'),
    ['rate_limit', 'u32'],
  ],
  ibv_send_wr: [
    ['wr_id', 'u64'],
    ...fields('next sg_list', 'pointer'),
    ...fields('num_sge opcode send_flags imm_data', 'u32'),
    ['remote_addr', 'u64'],
    ['rkey', 'u32'],
  ],
  ibv_sge: [['addr', 'u64'], ...fields('length lkey', 'u32')],
  ibv_wc: [
    ['wr_id', 'u64'],
    ...fields('status opcode vendor_err byte_len imm_data qp_num src_qp wc_flags', 'u32'),
    ...fields('pkey_index slid', 'u16'),
    ...fields('sl dlid_path_bits', 'u8'),
  ],
  ibv_port_attr: [
    ...fields('state max_mtu active_mtu gid_tbl_len port_cap_flags max_msg_sz bad_pkey_cntr qkey_viol_cntr', 'u32'),
    ...fields('pkey_tbl_len lid sm_lid', 'u16'),
    ...fields('lmc max_vl_num sm_sl subnet_timeout init_type_reply active_width active_speed phys_state', 'u8'),
    ...fields('link_layer flags', 'u8'),
    ['port_cap_flags2', 'u16'],
  ],
  ibv_device_attr: [
    ['fw_ver', [64, 'u8']],
    ...fields('node_guid sys_image_guid max_mr_size page_size_cap', 'u64'),
    ...fields('vendor_id vendor_part_id hw_ver max_qp max_qp_wr device_cap_flags max_sge max_sge_rd max_cq', 'u32'),
    ...fields('max_cqe max_mr max_pd max_qp_rd_atom max_ee_rd_atom max_res_rd_atom max_qp_init_rd_atom', 'u32'),
    ...fields('max_ee_init_rd_atom atomic_cap max_ee max_rdd max_mw max_raw_ipv6_qp max_raw_ethy_qp', 'u32'),
    ...fields('max_mcast_grp max_mcast_qp_attach max_total_mcast_qp_attach max_ah max_fmr max_map_per_fmr', 'u32'),
    ...fields('max_srq max_srq_wr max_srq_sge', 'u32'),
    ['max_pkeys', 'u16'],
    ...fields('local_ca_ack_delay phys_port_cnt', 'u8'),
  ],
  ibv_gid_entry: [['gid', [2, 'u64']], ...fields('gid_index port_num gid_type ndev_ifindex', 'u32')],
};

/** Where each field of ours is called what in verbs.h. */
const NAMES: ReadonlyArray<
  readonly [struct: string, ours: Readonly<Record<string, number>>, names: Record<string, string>]
> = [
  [
    'ibv_mr',
    layouts.MEMORY_REGION,
    { context: 'context', pd: 'pd', address: 'addr', length: 'length', lkey: 'lkey', rkey: 'rkey' },
  ],
  ['ibv_cq', layouts.COMPLETION_QUEUE, { context: 'context', channel: 'channel', entries: 'cqe' }],
  [
    'ibv_qp',
    layouts.QUEUE_PAIR,
    {
      context: 'context',
      pd: 'pd',
      sendCq: 'send_cq',
      recvCq: 'recv_cq',
      number: 'qp_num',
      state: 'state',
      type: 'qp_type',
    },
  ],
  [
    'ibv_qp_init_attr',
    layouts.QP_INIT,
    {
      sendCq: 'send_cq',
      recvCq: 'recv_cq',
      sendRequestsMax: 'cap.max_send_wr',
      recvRequestsMax: 'cap.max_recv_wr',
      sendPiecesMax: 'cap.max_send_sge',
      recvPiecesMax: 'cap.max_recv_sge',
      type: 'qp_type',
      signalAll: 'sq_sig_all',
    },
  ],
  [
    'ibv_qp_attr',
    layouts.QP_ATTR,
    {
      state: 'qp_state',
      pathMtu: 'path_mtu',
      receivePsn: 'rq_psn',
      sendPsn: 'sq_psn',
      remoteNumber: 'dest_qp_num',
      access: 'qp_access_flags',
      remoteGid: 'ah_attr.grh.dgid',
      localGidIndex: 'ah_attr.grh.sgid_index',
      hopLimit: 'ah_attr.grh.hop_limit',
      remoteLid: 'ah_attr.dlid',
      isGlobal: 'ah_attr.is_global',
      routePort: 'ah_attr.port_num',
      keyIndex: 'pkey_index',
      readsOut: 'max_rd_atomic',
      readsIn: 'max_dest_rd_atomic',
      rnrTimer: 'min_rnr_timer',
      port: 'port_num',
      timeout: 'timeout',
      retries: 'retry_cnt',
      rnrRetries: 'rnr_retry',
    },
  ],
  [
    'ibv_send_wr',
    layouts.SEND_REQUEST,
    {
      id: 'wr_id',
      pieces: 'sg_list',
      pieceCount: 'num_sge',
      opcode: 'opcode',
      flags: 'send_flags',
      remoteAddress: 'remote_addr',
      remoteKey: 'rkey',
    },
  ],
  ['ibv_sge', layouts.PIECE, { address: 'addr', length: 'length', key: 'lkey' }],
  ['ibv_wc', layouts.COMPLETION, { id: 'wr_id', status: 'status', vendorError: 'vendor_err' }],
  [
    'ibv_port_attr',
    layouts.PORT,
    {
      state: 'state',
      activeMtu: 'active_mtu',
      gidEntries: 'gid_tbl_len',
      messageBytesMax: 'max_msg_sz',
      lid: 'lid',
      linkLayer: 'link_layer',
    },
  ],
  [
    'ibv_device_attr',
    layouts.DEVICE,
    {
      regionBytesMax: 'max_mr_size',
      queuePairsMax: 'max_qp',
      requestsMax: 'max_qp_wr',
      completionsMax: 'max_cqe',
      readsIn: 'max_qp_rd_atom',
      readsOut: 'max_qp_init_rd_atom',
      ports: 'phys_port_cnt',
    },
  ],
  ['ibv_gid_entry', layouts.GID_ENTRY, { gid: 'gid', index: 'gid_index', port: 'port_num', type: 'gid_type' }],
];

test('fields lie where C puts those of verbs.h', () => {
  for (const [struct, { bytes, ...ours }, names] of NAMES) {
    const places = new Map<string, number>();
    const size = layOut(STRUCTS[struct]!, (name, at) => places.set(name, at));
    assert.deepEqual(Object.keys(ours).sort(), Object.keys(names).sort(), struct);
    for (const [field, name] of Object.entries(names)) assert.equal(ours[field], places.get(name), `${struct}.${name}`);
    // What is only read may be described to less than its end; what is written or counted in has to be whole.
    if (['ibv_sge', 'ibv_wc', 'ibv_qp_attr', 'ibv_qp_init_attr', 'ibv_gid_entry'].includes(struct))
      assert.equal(bytes, size, struct);
    assert.ok(Math.max(...Object.values(ours)) < bytes! && bytes! <= layouts.ROOM_BYTES, struct);
  }
});

test('a context has 32 operations, descriptors and a mutex in front of its mark', () => {
  const mutex = process.arch === 'arm64' ? 48 : 40;
  const { device, pollCq, reqNotifyCq, postSend, cmdFd, asyncFd, compVectors, abiCompat, bytes } = layouts.CONTEXT;
  const operation = (n: number): number => 8 + n * 8;
  assert.deepEqual([device, pollCq, reqNotifyCq, postSend], [0, operation(11), operation(12), operation(25)]);
  assert.deepEqual([cmdFd, asyncFd, compVectors], [operation(32), operation(32) + 4, operation(32) + 8]);
  assert.equal(abiCompat, operation(34) + mutex);
  assert.equal(bytes, abiCompat + 8);
});

const LIMITS = (soft: string): string =>
  `Limit                     Soft Limit           Hard Limit           Units     
Max locked memory         ${soft.padEnd(20)} unlimited            bytes     
`;

test('what may be locked', () => {
  assert.equal(parseLockLimit(LIMITS('8388608'), 'CapEff:\t0000000000000000\n'), 8388608);
  assert.equal(parseLockLimit(LIMITS('unlimited'), 'CapEff:\t0000000000000000\n'), Number.POSITIVE_INFINITY);
  assert.equal(parseLockLimit(LIMITS('65536'), 'CapEff:\t000001ffffffffff\n'), Number.POSITIVE_INFINITY);
  assert.equal(parseLockLimit('', ''), Number.POSITIVE_INFINITY);
  checkLockable(100, 100, 200);
  assert.throws(
    () => checkLockable(2 ** 29, 1, 2 ** 23),
    (error) =>
      error instanceof VerbsError &&
      /512\.0 MiB of memory can't be locked: this process may lock 8\.0 MiB/.test(error.reason),
  );
});

test('a device that is not there is an error in words', async () => {
  await assert.rejects(openVerbsDevice('none-of-this-name'), (error) => {
    assert.ok(error instanceof VerbsError, String(error));
    assert.ok(['NO_DEVICE', 'NO_LIBRARY', 'PLATFORM'].includes(error.code), error.code);
    return true;
  });
});
