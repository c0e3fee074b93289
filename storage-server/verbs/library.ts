/**
 * libibverbs.so.1 and the calls of the C library that go with it, through koffi: loaded at the first use, so that everything
 * else works without them. The only file of verbs/ that knows koffi. Pointers are BigInt; functions return what C returns.
 */
import { endianness } from 'node:os';
import { VerbsError } from './errors.ts';

export interface PollHandle {
  stop(): void;
  close(): void;
}

/** The functions of a context's table of operations, which verbs.h calls inline. */
export interface ContextOperations {
  postSend(queuePair: bigint, request: bigint, badRequest: bigint): number;
  pollCq(queue: bigint, count: number, completions: bigint): number;
  requestNotify(queue: bigint, solicitedOnly: number): number;
}

export interface VerbsLibrary {
  /** Pointers to devices; `list` is to be freed. */
  deviceList(): { readonly list: bigint | null; readonly devices: readonly bigint[] };
  freeDeviceList(list: bigint): void;
  deviceName(device: bigint): string;
  openDevice(device: bigint): bigint | null;
  closeDevice(context: bigint): number;
  queryDevice(context: bigint, attributes: Uint8Array): number;
  queryPort(context: bigint, port: number, attributes: Uint8Array): number;
  queryGids(context: bigint, entries: Uint8Array, most: number, entryBytes: number): number;
  allocPd(context: bigint): bigint | null;
  deallocPd(pd: bigint): number;
  registerMemory(pd: bigint, address: bigint, length: number, access: number): bigint | null;
  registerMemoryAside(pd: bigint, address: bigint, length: number, access: number): Promise<bigint | null>;
  deregisterMemory(region: bigint): number;
  deregisterMemoryAside(region: bigint): Promise<number>;
  createChannel(context: bigint): bigint | null;
  destroyChannel(channel: bigint): number;
  createCq(context: bigint, entries: number, channel: bigint | null): bigint | null;
  destroyCq(queue: bigint): number;
  getCqEvent(channel: bigint, queueOut: bigint, contextOut: bigint): number;
  ackCqEvents(queue: bigint, count: number): void;
  createQp(pd: bigint, init: Uint8Array): bigint | null;
  modifyQp(queuePair: bigint, attributes: Uint8Array, mask: number): number;
  /** The same in a thread of its own. */
  modifyQpAside(queuePair: bigint, attributes: Uint8Array, mask: number): Promise<number>;
  queryQp(queuePair: bigint, attributes: Uint8Array, mask: number, init: Uint8Array): number;
  destroyQp(queuePair: bigint): number;
  operations(pointers: { postSend: bigint; pollCq: bigint; requestNotify: bigint }): ContextOperations;
  /** Anonymous shared memory, or undefined. */
  map(length: number): bigint | undefined;
  unmap(address: bigint, length: number): void;
  unmapAside(address: bigint, length: number): Promise<void>;
  setNonBlocking(descriptor: number): boolean;
  poll(descriptor: number, onReady: () => void): PollHandle;
  /** The bytes at an address: good as long as they are. */
  view(address: bigint, length: number): ArrayBuffer;
  addressOf(view: Uint8Array): bigint;
  errno(): number;
}

const LIBRARY = 'libibverbs.so.1';
const PROT_READ_WRITE = 3;
const MAP_SHARED_ANONYMOUS = 0x21;
const MAP_FAILED = 0xffff_ffff_ffff_ffffn;
const F_GETFL = 3;
const F_SETFL = 4;
const O_NONBLOCK = 0o4000;

/** How to get what is missing, for the usual distributions. */
const INSTALL =
  'install rdma-core (Debian, Ubuntu: apt install libibverbs1 ibverbs-providers; Fedora, RHEL: dnf install libibverbs rdma-core)';

let loaded: Promise<VerbsLibrary> | undefined;

/** Throws VerbsError PLATFORM or NO_LIBRARY with what to do. */
export function loadVerbsLibrary(): Promise<VerbsLibrary> {
  loaded ??= load().catch((error: unknown) => {
    loaded = undefined;
    throw error;
  });
  return loaded;
}

async function load(): Promise<VerbsLibrary> {
  const { platform, arch } = process;
  if (platform !== 'linux' || (arch !== 'x64' && arch !== 'arm64') || endianness() !== 'LE') {
    throw new VerbsError('PLATFORM', `RDMA needs Linux on x86-64 or arm64, this is ${platform} on ${arch}`);
  }
  const koffi = await import('koffi').then(
    (module) => module.default,
    (cause: Error) => {
      throw new VerbsError('NO_LIBRARY', `the package koffi is not there (${cause.message})`, { cause });
    },
  );
  try {
    return bind(koffi);
  } catch (cause) {
    const why = (cause as Error).message;
    throw new VerbsError('NO_LIBRARY', `${LIBRARY} can't be used (${why}): ${INSTALL}`, { cause });
  }
}

function bind(koffi: typeof import('koffi')['default']): VerbsLibrary {
  const verbs = koffi.load(LIBRARY);
  // the symbols that Node.js itself is linked with
  const c = koffi.load(null);
  const getDeviceList = verbs.func('void *ibv_get_device_list(_Out_ int *num)');
  const getGids = verbs.func(
    'int64_t _ibv_query_gid_table(void *context, void *entries, size_t most, uint32_t flags, size_t bytes)',
  );
  const createCq = verbs.func('void *ibv_create_cq(void *context, int entries, void *own, void *channel, int vector)');
  const modifyQp = verbs.func('int ibv_modify_qp(void *qp, void *attributes, int mask)');
  const register = verbs.func('void *ibv_reg_mr(void *pd, void *address, size_t length, int access)');
  const deregister = verbs.func('int ibv_dereg_mr(void *region)');
  // Before anything is registered: what a child of this process writes must not move pages away from the device.
  verbs.func('int ibv_fork_init()')();
  const mmap = c.func('void *mmap(void *address, size_t length, int prot, int flags, int fd, int64_t offset)');
  const munmap = c.func('int munmap(void *address, size_t length)');
  const fcntl = c.func('int fcntl(int fd, int command, ...)');
  const postSend = koffi.proto('int qanat_post_send(void *qp, void *wr, void *bad)');
  const pollCq = koffi.proto('int qanat_poll_cq(void *cq, int count, void *wc)');
  const notifyCq = koffi.proto('int qanat_req_notify_cq(void *cq, int solicited)');
  return {
    deviceList() {
      const count: [number] = [0];
      const list: bigint | null = getDeviceList(count);
      if (list === null || count[0] <= 0) return { list, devices: [] };
      return { list, devices: Array.from(new BigUint64Array(koffi.view(list, 8 * count[0]))) };
    },
    freeDeviceList: verbs.func('void ibv_free_device_list(void *list)'),
    deviceName: verbs.func('const char *ibv_get_device_name(void *device)'),
    openDevice: verbs.func('void *ibv_open_device(void *device)'),
    closeDevice: verbs.func('int ibv_close_device(void *context)'),
    queryDevice: verbs.func('int ibv_query_device(void *context, void *attributes)'),
    queryPort: verbs.func('int ibv_query_port(void *context, uint8_t port, void *attributes)'),
    queryGids: (context, entries, most, entryBytes) => Number(getGids(context, entries, most, 0, entryBytes)),
    allocPd: verbs.func('void *ibv_alloc_pd(void *context)'),
    deallocPd: verbs.func('int ibv_dealloc_pd(void *pd)'),
    registerMemory: register,
    registerMemoryAside: (pd, address, length, access) => aside(register, pd, address, length, access),
    deregisterMemory: deregister,
    deregisterMemoryAside: (region) => aside(deregister, region),
    createChannel: verbs.func('void *ibv_create_comp_channel(void *context)'),
    destroyChannel: verbs.func('int ibv_destroy_comp_channel(void *channel)'),
    createCq: (context, entries, channel) => createCq(context, entries, null, channel, 0),
    destroyCq: verbs.func('int ibv_destroy_cq(void *queue)'),
    getCqEvent: verbs.func('int ibv_get_cq_event(void *channel, void *queue, void *own)'),
    ackCqEvents: verbs.func('void ibv_ack_cq_events(void *queue, unsigned int count)'),
    createQp: verbs.func('void *ibv_create_qp(void *pd, void *init)'),
    modifyQp,
    modifyQpAside: (queuePair, attributes, mask) => aside(modifyQp, queuePair, attributes, mask),
    queryQp: verbs.func('int ibv_query_qp(void *qp, void *attributes, int mask, void *init)'),
    destroyQp: verbs.func('int ibv_destroy_qp(void *qp)'),
    operations: (pointers) => ({
      postSend: koffi.decode(pointers.postSend, postSend),
      pollCq: koffi.decode(pointers.pollCq, pollCq),
      requestNotify: koffi.decode(pointers.requestNotify, notifyCq),
    }),
    map(length) {
      const address: bigint | null = mmap(null, length, PROT_READ_WRITE, MAP_SHARED_ANONYMOUS, -1, 0);
      return address === null || BigInt.asUintN(64, address) === MAP_FAILED ? undefined : address;
    },
    unmap(address, length) {
      munmap(address, length);
    },
    unmapAside: (address, length) => aside(munmap, address, length),
    setNonBlocking(descriptor) {
      const flags: number = fcntl(descriptor, F_GETFL);
      return flags >= 0 && fcntl(descriptor, F_SETFL, 'int', flags | O_NONBLOCK) >= 0;
    },
    poll: (descriptor, onReady) => koffi.node.poll(descriptor, { readable: true }, () => onReady()),
    view: (address, length) => koffi.view(address, length),
    addressOf: (view) => koffi.address(view),
    errno: () => koffi.errno(),
  };
}

/** Calls a function in a thread of its own. */
function aside<T>(call: { readonly async: (...given: unknown[]) => void }, ...given: readonly unknown[]): Promise<T> {
  return new Promise((resolve, reject) => {
    call.async(...given, (error: unknown, result: T) => {
      if (error === null || error === undefined) resolve(result);
      else reject(error);
    });
  });
}
