/**
 * The seam to RDMA: one device with memory that peers may read, memory that READs land in, and queue pairs. Implemented by
 * device.ts over libibverbs, and by a model in tests. Nothing here waits.
 *
 * Contract: addresses and lengths are those of registrations; whoever posts a READ keeps the memory registered until its
 * completion has been taken, or the queue pair is destroyed: when `destroy` returns nothing lands any more.
 */
import type { VerbsEndpoint } from '../protocol/index.ts';

/** What a device and its port are, for people and for negotiations. */
export interface DeviceFacts {
  readonly name: string;
  readonly port: number;
  readonly link: 'InfiniBand' | 'Ethernet';
  /** The port's address that is used, in hexadecimal with colons, and its kind. */
  readonly gid: string;
  readonly gidKind: 'IB' | 'RoCE v1' | 'RoCE v2';
  readonly lid: number;
  /** Bytes. */
  readonly mtuBytes: number;
  /** Largest READ, bytes. */
  readonly messageBytesMax: number;
  readonly queuePairsMax: number;
  /** READs of one queue pair that may be under way, as the one who asks and as the one who is asked. */
  readonly readsOutMax: number;
  readonly readsInMax: number;
}

/** Memory of this process outside JavaScript's heap: shared and anonymous, in pages of its own. */
export interface NativeMemory {
  readonly address: number;
  readonly length: number;
  /** A view of [start, start + length), good until `free`. */
  view(start: number, length: number): Uint8Array;
  /** Views of it must not be used any more, and nothing may be registered. */
  free(): void;
  /** The same off this thread: giving back much takes long. */
  freeAside(): Promise<void>;
}

/** Memory that the device knows. */
export interface Registration {
  readonly address: number;
  readonly length: number;
  /** Names it in READs of this side. */
  readonly lkey: number;
  /** Names it in READs of peers. */
  readonly rkey: number;
  /** Nothing may be under way into it. Throws VerbsError RESOURCES when the device does not let go. */
  release(): void;
  /** The same off this thread. */
  releaseAside(): Promise<void>;
}

/** One READ: from a peer's memory into local memory. */
export interface RemoteRead {
  /** A number up to 2^53 - 1. */
  readonly id: number;
  readonly localAddress: number;
  readonly lkey: number;
  readonly remoteAddress: number;
  readonly rkey: number;
  readonly length: number;
}

/** `status` is one of `enum ibv_wc_status`. */
export type OnCompletion = (id: number, status: number, vendorError: number) => void;

export interface VerbsQueuePair {
  /** This end, as the other one has to know it. */
  readonly endpoint: VerbsEndpoint;
  /**
   * Connects: it answers READs from then on, and a requester may post. Once, and off this thread: the kernel may look for
   * the other end for a second. Rejects with VerbsError CONNECT.
   */
  connect(remote: VerbsEndpoint): Promise<void>;
  /** Posts a READ; gives 0, or the error number with which it was refused. At most `depth` may be out. */
  post(read: RemoteRead): number;
  /** Takes completions, a handful at most; returns how many. Throws VerbsError RESOURCES when the queue is broken. */
  poll(onCompletion: OnCompletion): number;
  /** Calls back when there are completions to take, once for any number of them; a turn of `poll` until 0 is due then. */
  watch(onReady: () => void): void;
  /** Ends it. Completions of what was out are told if they come at once; nothing lands after the return. */
  destroy(onCompletion?: OnCompletion): void;
}

export interface VerbsDevice {
  readonly facts: DeviceFacts;
  /** Throws VerbsError MEMORY. */
  allocate(length: number): NativeMemory;
  /** Peers may read it, and do nothing else. Off this thread: a region takes a second for some GiB. Rejects with VerbsError MEMORY. */
  registerForPeers(memory: NativeMemory): Promise<Registration>;
  /** READs may land in it. A buffer stays where it is as long as it is registered. Throws VerbsError MEMORY. */
  registerForReads(memory: NativeMemory | SharedArrayBuffer): Registration;
  /** A queue pair that posts up to `depth` READs, or with 0 only answers. Throws VerbsError RESOURCES. */
  createQueuePair(depth: number): VerbsQueuePair;
  /** Everything made with it has been released before. */
  close(): void;
}

/** How a device is opened; tests give another one. */
export type OpenVerbsDevice = (name: string | undefined) => Promise<VerbsDevice>;
