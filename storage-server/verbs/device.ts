/**
 * One opened RDMA device over libibverbs: its port, its limits, its protection domain, and memory registered in it. What
 * the library lays out is compared with layouts.ts before it is used: a library that differs is refused, never guessed at.
 */
import { readFileSync, readlinkSync } from 'node:fs';
import { deviceListText, hasNoDevice, withDeviceList } from './device-list.ts';
import { differs, VerbsError } from './errors.ts';
import { pointerIn, structAt, u32In } from './fields.ts';
import {
  ACCESS,
  CONTEXT,
  DEVICE,
  KERNEL_ABI_VERSION,
  MEMORY_REGION,
  PROTECTION_DOMAIN,
  ROOM_BYTES,
} from './layouts.ts';
import { type ContextOperations, loadVerbsLibrary, type VerbsLibrary } from './library.ts';
import { checkLockable } from './locked-memory.ts';
import { choosePort, type DevicePort, isMappedIPv4 } from './port.ts';
import { type DeviceLimits, LibraryQueuePair, type QueuePairDevice } from './queue-pair.ts';
import type { DeviceFacts, NativeMemory, Registration, VerbsDevice, VerbsQueuePair } from './verbs.ts';

/** Opens the device of a name, or the first with an active port. Throws VerbsError. */
export async function openVerbsDevice(name?: string): Promise<VerbsDevice> {
  if (hasNoDevice()) throw new VerbsError('NO_DEVICE', deviceListText([], name));
  checkKernel();
  const library = await loadVerbsLibrary();
  return withDeviceList(library, (devices) => {
    const candidates = name === undefined ? devices : devices.filter((device) => device.name === name);
    if (candidates.length === 0) throw new VerbsError('NO_DEVICE', deviceListText(devices, name));
    let failure: unknown;
    for (const candidate of candidates) {
      try {
        return LibraryDevice.open(library, candidate.pointer, candidate.name);
      } catch (error) {
        failure ??= error;
      }
    }
    throw failure;
  });
}

class LibraryDevice implements VerbsDevice, QueuePairDevice {
  readonly facts: DeviceFacts;
  readonly library: VerbsLibrary;
  readonly operations: ContextOperations;
  readonly context: bigint;
  readonly pd: bigint;
  readonly limits: DeviceLimits;
  readonly port: DevicePort;
  #lockedBytes = 0;
  #closed = false;
  /** Queue pairs that there are, also those that are on their way out. */
  #pairs = 0;

  private constructor(library: VerbsLibrary, context: bigint, name: string, limits: DeviceLimits, port: DevicePort) {
    this.library = library;
    this.context = context;
    this.limits = limits;
    this.port = port;
    const struct = structAt(library, context, CONTEXT.bytes);
    this.operations = library.operations({
      postSend: pointerIn(struct, CONTEXT.postSend),
      pollCq: pointerIn(struct, CONTEXT.pollCq),
      requestNotify: pointerIn(struct, CONTEXT.reqNotifyCq),
    });
    const pd = library.allocPd(context);
    if (pd === null) throw new VerbsError('RESOURCES', `${name}: no protection domain: errno ${library.errno()}`);
    this.pd = pd;
    const isRight = pointerIn(structAt(library, pd, PROTECTION_DOMAIN.bytes), PROTECTION_DOMAIN.context) === context;
    if (!isRight) throw differs('ibv_pd');
    this.facts = {
      name,
      port: port.number,
      link: port.link,
      gid: gidText(port.gid),
      gidKind: port.gidKind,
      lid: port.lid,
      mtuBytes: 128 << port.mtu,
      messageBytesMax: port.messageBytesMax,
      queuePairsMax: limits.queuePairsMax,
      readsOutMax: limits.readsOut,
      readsInMax: limits.readsIn,
    };
  }

  static open(library: VerbsLibrary, pointer: bigint, name: string): LibraryDevice {
    const context = library.openDevice(pointer);
    if (context === null) {
      const errno = library.errno();
      const why = errno === 13 || errno === 1 ? 'this user may not open /dev/infiniband/uverbs*' : `errno ${errno}`;
      throw new VerbsError('NO_DEVICE', `${name} can't be opened: ${why}`);
    }
    try {
      checkContext(library, context, pointer);
      const limits = queryLimits(library, context, name);
      return new LibraryDevice(library, context, name, limits, choosePort(library, context, name, limits.ports));
    } catch (error) {
      library.closeDevice(context);
      throw error;
    }
  }

  allocate(length: number): NativeMemory {
    const { library } = this;
    const address = length > 0 && Number.isSafeInteger(length) ? library.map(length) : undefined;
    if (address === undefined) throw new VerbsError('MEMORY', `no ${length} bytes of memory: errno ${library.errno()}`);
    let freed = false;
    return {
      address: Number(address),
      length,
      view(start, bytes) {
        if (freed) throw new Error('memory was freed');
        if (!(start >= 0 && bytes >= 0 && start + bytes <= length)) throw new RangeError(`${bytes} bytes at ${start}`);
        return new Uint8Array(bytes === 0 ? new ArrayBuffer(0) : library.view(address + BigInt(start), bytes));
      },
      free() {
        if (freed) return;
        freed = true;
        library.unmap(address, length);
      },
      async freeAside() {
        if (freed) return;
        freed = true;
        await library.unmapAside(address, length);
      },
    };
  }

  async registerForPeers({ address, length }: NativeMemory): Promise<Registration> {
    this.#checkRoom(length);
    this.#lockedBytes += length;
    try {
      const given = BigInt(address);
      const region = await this.library.registerMemoryAside(this.pd, given, length, ACCESS.REMOTE_READ);
      return this.#registration(region, given, length, undefined);
    } finally {
      this.#lockedBytes -= length;
    }
  }

  registerForReads(memory: NativeMemory | SharedArrayBuffer): Registration {
    if (!(memory instanceof SharedArrayBuffer)) {
      return this.#register(BigInt(memory.address), memory.length);
    }
    const address = this.library.addressOf(new Uint8Array(memory));
    return this.#register(address, memory.byteLength, memory);
  }

  createQueuePair(depth: number): VerbsQueuePair {
    return new LibraryQueuePair(this, depth);
  }

  pairMade(): void {
    this.#pairs++;
  }

  pairGone(): void {
    this.#pairs--;
    if (this.#closed) this.#closeIfFree();
  }

  /** A queue pair that is being connected in a thread is waited for. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#closeIfFree();
  }

  #closeIfFree(): void {
    if (this.#pairs > 0) return;
    this.library.deallocPd(this.pd);
    this.library.closeDevice(this.context);
  }

  /** `keeps` is held as long as the memory is registered. */
  #register(address: bigint, length: number, keeps?: SharedArrayBuffer): Registration {
    this.#checkRoom(length);
    const region = this.library.registerMemory(this.pd, address, length, ACCESS.LOCAL_WRITE);
    return this.#registration(region, address, length, keeps);
  }

  #checkRoom(length: number): void {
    if (length > this.limits.regionBytesMax) {
      const most = `${this.facts.name} registers at most ${this.limits.regionBytesMax} bytes`;
      throw new VerbsError('MEMORY', `${most}, not ${length}`);
    }
    checkLockable(length, this.#lockedBytes);
  }

  #registration(
    region: bigint | null,
    address: bigint,
    length: number,
    keeps: SharedArrayBuffer | undefined,
  ): Registration {
    const { library } = this;
    if (region === null) {
      throw new VerbsError('MEMORY', `${this.facts.name} does not register ${length} bytes: errno ${library.errno()}`);
    }
    const struct = structAt(library, region, MEMORY_REGION.bytes);
    const isRight =
      pointerIn(struct, MEMORY_REGION.context) === this.context &&
      pointerIn(struct, MEMORY_REGION.pd) === this.pd &&
      pointerIn(struct, MEMORY_REGION.address) === address &&
      pointerIn(struct, MEMORY_REGION.length) === BigInt(length);
    if (!isRight) {
      library.deregisterMemory(region);
      throw differs('ibv_mr');
    }
    this.#lockedBytes += length;
    let held: SharedArrayBuffer | undefined = keeps;
    let isReleased = false;
    const released = (errno: number): void => {
      // The kernel still has it: so has this process, for good.
      if (errno !== 0) throw new VerbsError('RESOURCES', `memory stays registered: errno ${errno}`);
      this.#lockedBytes -= held?.byteLength ?? length;
      held = undefined;
    };
    return {
      address: Number(address),
      length,
      lkey: u32In(struct, MEMORY_REGION.lkey),
      rkey: u32In(struct, MEMORY_REGION.rkey),
      release: () => {
        if (isReleased) return;
        isReleased = true;
        released(library.deregisterMemory(region));
      },
      releaseAside: async () => {
        if (isReleased) return;
        isReleased = true;
        released(await library.deregisterMemoryAside(region));
      },
    };
  }
}

/** The kernel says which interface its library has to have. Throws VerbsError LAYOUT. */
function checkKernel(): void {
  let version: string;
  try {
    version = readFileSync('/sys/class/infiniband_verbs/abi_version', 'utf8').trim();
  } catch {
    // Not told: the library finds out.
    return;
  }
  if (version === String(KERNEL_ABI_VERSION)) return;
  throw new VerbsError(
    'LAYOUT',
    `the kernel's verbs have interface ${version} and not ${KERNEL_ABI_VERSION}: RDMA is not used`,
  );
}

/** Compares what the library laid out with what layouts.ts says of it. Throws VerbsError LAYOUT. */
function checkContext(library: VerbsLibrary, context: bigint, device: bigint): void {
  const struct = structAt(library, context, CONTEXT.bytes);
  const isRight =
    pointerIn(struct, CONTEXT.device) === device &&
    pointerIn(struct, CONTEXT.abiCompat) === 0xffff_ffff_ffff_ffffn &&
    isDescriptorOf(struct.getInt32(CONTEXT.cmdFd, true), '/uverbs') &&
    isDescriptorOf(struct.getInt32(CONTEXT.asyncFd, true), 'infinibandevent') &&
    struct.getInt32(CONTEXT.compVectors, true) > 0 &&
    [CONTEXT.postSend, CONTEXT.pollCq, CONTEXT.reqNotifyCq].every((at) => pointerIn(struct, at) !== 0n);
  if (!isRight) throw differs('ibv_context');
}

function isDescriptorOf(descriptor: number, part: string): boolean {
  try {
    return descriptor > 2 && readlinkSync(`/proc/self/fd/${descriptor}`).includes(part);
  } catch {
    return false;
  }
}

function queryLimits(library: VerbsLibrary, context: bigint, name: string): DeviceLimits {
  const bytes = new Uint8Array(ROOM_BYTES);
  const errno = library.queryDevice(context, bytes);
  if (errno !== 0) throw new VerbsError('NO_DEVICE', `${name} does not say what it can: errno ${errno}`);
  const struct = new DataView(bytes.buffer);
  const limits = {
    regionBytesMax: Number(struct.getBigUint64(DEVICE.regionBytesMax, true)),
    queuePairsMax: struct.getInt32(DEVICE.queuePairsMax, true),
    requestsMax: struct.getInt32(DEVICE.requestsMax, true),
    completionsMax: struct.getInt32(DEVICE.completionsMax, true),
    readsIn: struct.getInt32(DEVICE.readsIn, true),
    readsOut: struct.getInt32(DEVICE.readsOut, true),
    ports: struct.getUint8(DEVICE.ports),
  };
  if (Object.values(limits).some((value) => value < 1)) throw differs('ibv_device_attr');
  return limits;
}

/** As addresses of IPv6 are written: those of RoCE are such, or IPv4 in them. */
function gidText(gid: Uint8Array): string {
  const groups = Buffer.from(gid).toString('hex').match(/..../g)!;
  if (isMappedIPv4(gid)) return `::ffff:${gid.subarray(12).join('.')}`;
  return new URL(`http://[${groups.join(':')}]/`).hostname.slice(1, -1);
}
