/**
 * Where fields lie in the structures of libibverbs.so.1, in bytes. Source: `libibverbs/verbs.h` of rdma-core
 * (github.com/linux-rdma/rdma-core), offsets as a compiler prints them. They are the library's binary interface (symbol
 * versions IBVERBS_1.1 and later) and equal on x86-64 and arm64, both LP64 and little-endian with natural alignment, but for
 * what lies behind a mutex of the C library.
 * Nothing here is believed blindly: what can be read back is compared when a device is opened (device.ts, queue-pair.ts).
 */

/** What /sys/class/infiniband_verbs/abi_version says, of the kernels and libraries that these are layouts of. */
export const KERNEL_ABI_VERSION = 6;

/** Bytes of `pthread_mutex_t`. */
const MUTEX_BYTES = process.arch === 'arm64' ? 48 : 40;

/** `struct ibv_context`; `struct ibv_context_ops` begins at 8, its members are 32 pointers. */
export const CONTEXT = {
  bytes: 288 + MUTEX_BYTES,
  device: 0,
  pollCq: 96,
  reqNotifyCq: 104,
  postSend: 208,
  cmdFd: 264,
  asyncFd: 268,
  compVectors: 272,
  /** All ones in every library since verbs can be extended. */
  abiCompat: 280 + MUTEX_BYTES,
} as const;

/** `struct ibv_pd` */
export const PROTECTION_DOMAIN = { bytes: 16, context: 0 } as const;

/** `struct ibv_mr` */
export const MEMORY_REGION = { bytes: 48, context: 0, pd: 8, address: 16, length: 24, lkey: 36, rkey: 40 } as const;

/** `struct ibv_comp_channel` */
export const CHANNEL = { bytes: 16, context: 0, fd: 8 } as const;

/** `struct ibv_cq` */
export const COMPLETION_QUEUE = { bytes: 32, context: 0, channel: 8, entries: 28 } as const;

/** `struct ibv_qp` */
export const QUEUE_PAIR = {
  bytes: 64,
  context: 0,
  pd: 16,
  sendCq: 24,
  recvCq: 32,
  number: 52,
  state: 56,
  type: 60,
} as const;

/** `struct ibv_qp_init_attr` with `struct ibv_qp_cap` at 32 */
export const QP_INIT = {
  bytes: 64,
  sendCq: 8,
  recvCq: 16,
  sendRequestsMax: 32,
  recvRequestsMax: 36,
  sendPiecesMax: 40,
  recvPiecesMax: 44,
  type: 52,
  signalAll: 56,
} as const;

/** `struct ibv_qp_attr` with `struct ibv_ah_attr` at 56, which begins with `struct ibv_global_route` */
export const QP_ATTR = {
  bytes: 144,
  state: 0,
  pathMtu: 8,
  receivePsn: 20,
  sendPsn: 24,
  remoteNumber: 28,
  access: 32,
  remoteGid: 56,
  localGidIndex: 76,
  hopLimit: 77,
  remoteLid: 80,
  isGlobal: 85,
  routePort: 86,
  keyIndex: 120,
  readsOut: 126,
  readsIn: 127,
  rnrTimer: 128,
  port: 129,
  timeout: 130,
  retries: 131,
  rnrRetries: 132,
} as const;

/** `struct ibv_send_wr`, of a READ */
export const SEND_REQUEST = {
  bytes: 128,
  id: 0,
  pieces: 16,
  pieceCount: 24,
  opcode: 28,
  flags: 32,
  remoteAddress: 40,
  remoteKey: 48,
} as const;

/** `struct ibv_sge` */
export const PIECE = { bytes: 16, address: 0, length: 8, key: 12 } as const;

/** `struct ibv_wc` */
export const COMPLETION = { bytes: 48, id: 0, status: 8, vendorError: 16 } as const;

/** `struct ibv_port_attr`; a library may write fewer bytes than its newest has. */
export const PORT = {
  bytes: 52,
  state: 0,
  activeMtu: 8,
  gidEntries: 12,
  messageBytesMax: 20,
  lid: 34,
  linkLayer: 46,
} as const;

/** `struct ibv_device_attr` */
export const DEVICE = {
  bytes: 232,
  regionBytesMax: 80,
  queuePairsMax: 108,
  requestsMax: 112,
  completionsMax: 132,
  readsIn: 144,
  readsOut: 156,
  ports: 227,
} as const;

/** `struct ibv_gid_entry` */
export const GID_ENTRY = { bytes: 32, gid: 0, index: 16, port: 20, type: 24 } as const;

/** Numbers of the enumerations in the same header. */
export const QP_TYPE_RC = 2;
export const QP_STATE = { RESET: 0, INIT: 1, RTR: 2, RTS: 3, ERR: 6 } as const;
export const OPCODE_RDMA_READ = 4;
export const SEND_SIGNALED = 2;
export const ACCESS = { LOCAL_WRITE: 1, REMOTE_READ: 4 } as const;
export const PORT_ACTIVE = 4;
export const GID_TYPE = { IB: 0, ROCE_V1: 1, ROCE_V2: 2 } as const;
export const LINK_LAYER = { INFINIBAND: 1, ETHERNET: 2 } as const;
export const MTU_LARGEST = 5;

/** `enum ibv_qp_attr_mask` */
export const QP_MASK = {
  STATE: 1,
  ACCESS: 8,
  KEY_INDEX: 16,
  PORT: 32,
  ROUTE: 128,
  PATH_MTU: 256,
  TIMEOUT: 512,
  RETRIES: 1024,
  RNR_RETRIES: 2048,
  RECEIVE_PSN: 4096,
  READS_OUT: 8192,
  RNR_TIMER: 0x8000,
  SEND_PSN: 0x10000,
  READS_IN: 0x20000,
  REMOTE_NUMBER: 0x100000,
} as const;

/** Bytes that structures which the library fills get here: room for versions that write more. */
export const ROOM_BYTES = 512;
