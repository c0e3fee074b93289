/**
 * The RDMA device as all transports of a thread share it: opened once, closed with the last of them; memory that READs land
 * in is registered once, when the first READ is to land there, and stays so until then. Registered is what is large and
 * shared, which is the decoders' pool: a READ lands where kernels read it. What else there is, and what can't be
 * registered, is read through a queue pair's own memory and copied.
 *
 * Registered pages are the device's: nobody may give them back to the system (MADV_DONTNEED and the like) meanwhile, or
 * put others in their place.
 */
import {
  type OpenVerbsDevice,
  openVerbsDevice,
  type Registration,
  type VerbsDevice,
  VerbsError,
} from '../../storage-server/verbs/index.ts';
import { REGISTERED_BUFFERS_MAX, REGISTERED_BYTES_MIN } from './limits.ts';

/** What a thread has of RDMA, for people and metrics. */
export interface VerbsFigures {
  readonly device: string;
  readonly gid: string;
  readonly registeredBytes: number;
}

export class VerbsClient {
  readonly device: VerbsDevice;
  readonly #registrations = new Map<SharedArrayBuffer, Registration>();
  /** Why a buffer is not registered. */
  readonly #failures = new WeakMap<SharedArrayBuffer, string>();
  /** Told once of each buffer that is not registered, with the reason. */
  onUnregistered: (reason: string) => void = () => {};

  constructor(device: VerbsDevice) {
    this.device = device;
  }

  get figures(): VerbsFigures {
    let registeredBytes = 0;
    for (const { length } of this.#registrations.values()) registeredBytes += length;
    const { name, gid } = this.device.facts;
    return { device: name, gid, registeredBytes };
  }

  /** The registration of the memory that a view is of; undefined if READs have to be copied there. */
  registrationOf({ buffer }: Uint8Array): Registration | undefined {
    if (!(buffer instanceof SharedArrayBuffer) || buffer.byteLength < REGISTERED_BYTES_MIN) return undefined;
    const known = this.#registrations.get(buffer);
    if (known !== undefined || this.#failures.has(buffer)) return known;
    if (this.#registrations.size >= REGISTERED_BUFFERS_MAX) return undefined;
    try {
      const registration = this.device.registerForReads(buffer);
      this.#registrations.set(buffer, registration);
      return registration;
    } catch (error) {
      if (!(error instanceof VerbsError)) throw error;
      this.#failures.set(buffer, error.reason);
      this.onUnregistered(error.reason);
      return undefined;
    }
  }

  /** No queue pair is left. */
  close(): void {
    try {
      for (const registration of this.#registrations.values()) registration.release();
      this.device.close();
    } catch (error) {
      // What the device does not let go of stays its own until the process ends.
      if (!(error instanceof VerbsError)) throw error;
    }
  }
}

interface Shared {
  readonly client: Promise<VerbsClient>;
  users: number;
}

/** By how the device is opened, then by its name. */
const shared = new Map<OpenVerbsDevice, Map<string, Shared>>();

export interface VerbsLease {
  readonly client: VerbsClient;
  /** Gives it back; all queue pairs of the lease are gone. */
  release(): void;
}

/** The device of a name, or the first that works, for as long as the lease is held. Throws VerbsError. */
export async function leaseVerbs(
  name: string | undefined,
  open: OpenVerbsDevice = openVerbsDevice,
): Promise<VerbsLease> {
  let byName = shared.get(open);
  if (byName === undefined) {
    byName = new Map();
    shared.set(open, byName);
  }
  const key = name ?? '';
  let entry = byName.get(key);
  if (entry === undefined) {
    entry = { client: open(name).then((device) => new VerbsClient(device)), users: 0 };
    byName.set(key, entry);
  }
  const held = entry;
  held.users++;
  let released = false;
  const release = (): void => {
    if (released) return;
    released = true;
    if (--held.users > 0) return;
    byName.delete(key);
    held.client.then(
      (client) => client.close(),
      () => {},
    );
  };
  try {
    return { client: await held.client, release };
  } catch (error) {
    release();
    throw error;
  }
}
