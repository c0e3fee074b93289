/**
 * A tree of files mounted on a folder: mount, device, session and invalidations together, from the first check to the
 * last step of the unmount. The thread that calls this is the one that answers; it must never touch its own mount.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { MountError } from '../errors.ts';
import type { FileTree } from './content.ts';
import { DeviceBinding } from './device.ts';
import type { KernelOffer } from './init.ts';
import { loadLibc } from './libc.ts';
import { READ_AHEAD_BYTES, READY_MS, RELEASE_MS, UNMOUNT_GRACE_MS } from './limits.ts';
import type { MountOptions, Unmounted } from './mount.ts';
import { mountFolder, unmountFolder } from './mount.ts';
import { mountAt, setReadAhead } from './mount-table.ts';
import type { TreeChange } from './nodes.ts';
import { InvalidationThread } from './notify.ts';
import type { SessionOptions } from './session.ts';
import { FuseSession } from './session.ts';

export interface MountTreeOptions extends MountOptions, Omit<SessionOptions, 'binding' | 'notify'> {
  /** Bytes that the kernel reads ahead, where it lets us say so. */
  readonly readAheadBytes?: number;
  /** Awaited before the descriptor is closed: whoever writes to it from other threads has to be done by then. */
  readonly beforeClose?: () => Promise<void>;
}

export class MountedTree {
  readonly session: FuseSession;
  /** The folder's real path. */
  readonly folder: string;
  /** Of /dev/fuse: for notifyStore on other threads. */
  readonly descriptor: number;
  readonly offer: KernelOffer;
  /** The kernel reads ahead as far as was asked: only root may say how far. */
  readonly readAheadSet: boolean;
  /** A dead mount was there and has been cleared away. */
  readonly cleared: boolean;
  readonly #invalidations: InvalidationThread;
  readonly #binding: DeviceBinding;
  readonly #beforeClose: (() => Promise<void>) | undefined;
  #unmounting: Promise<Unmounted> | undefined;
  #releasing: Promise<void> | undefined;

  /** Made by mountTree. */
  constructor(
    parts: {
      session: FuseSession;
      binding: DeviceBinding;
      invalidations: InvalidationThread;
      beforeClose: (() => Promise<void>) | undefined;
    },
    facts: { folder: string; descriptor: number; offer: KernelOffer; readAheadSet: boolean; cleared: boolean },
  ) {
    this.session = parts.session;
    this.#binding = parts.binding;
    this.#invalidations = parts.invalidations;
    this.#beforeClose = parts.beforeClose;
    this.folder = facts.folder;
    this.descriptor = facts.descriptor;
    this.offer = facts.offer;
    this.readAheadSet = facts.readAheadSet;
    this.cleared = facts.cleared;
    // unmounted by somebody else
    void this.session.ended.then(() => this.#release());
  }

  /** See FuseSession.replaceTree. */
  replaceTree(tree: FileTree): TreeChange {
    return this.session.replaceTree(tree);
  }

  /**
   * Unmounts within about `graceMs`: readers may finish for half of that time, then what waits is answered with
   * ENOTCONN, at last the folder is detached. Open handles of a detached mount answer ENOTCONN. Safe to call again.
   */
  unmount(graceMs = UNMOUNT_GRACE_MS): Promise<Unmounted> {
    this.#unmounting ??= this.#unmount(graceMs);
    return this.#unmounting;
  }

  async #unmount(graceMs: number): Promise<Unmounted> {
    try {
      return await unmountFolder(this.folder, { graceMs, onBusy: () => this.session.stop() });
    } catch (error) {
      // somebody else was faster
      if (error instanceof MountError && error.code === 'NOT_MOUNTED') return 'unmounted';
      throw error;
    } finally {
      this.session.stop();
      await Promise.race([this.session.ended, sleep(RELEASE_MS, undefined, { ref: false })]);
      await this.#release();
    }
  }

  #release(): Promise<void> {
    this.#releasing ??= this.#letGo();
    return this.#releasing;
  }

  async #letGo(): Promise<void> {
    // while its thread waits in the kernel for an answer of ours, somebody has to answer
    await this.#invalidations.idle(RELEASE_MS);
    await this.#beforeClose?.();
    this.#invalidations.close();
    this.#binding.close();
  }
}

/** Mounts, and resolves once the kernel has begun. Throws MountError; nothing is mounted then. */
export async function mountTree(options: MountTreeOptions): Promise<MountedTree> {
  const libc = await loadLibc();
  const { descriptor, folder, cleared } = await mountFolder(options);
  const binding = new DeviceBinding(libc, descriptor);
  const invalidations = new InvalidationThread(descriptor);
  try {
    const notify = (messages: readonly Uint8Array[]) => invalidations.write(messages);
    const session = new FuseSession({ ...options, binding, notify });
    const late = sleep(READY_MS, undefined, { ref: false }).then(() => {
      throw new MountError('TIMEOUT', `the kernel has not begun within ${READY_MS} ms`);
    });
    late.catch(() => undefined);
    const offer = await Promise.race([session.ready, late]);
    const { device } = mountAt(folder) ?? { device: '' };
    const readAheadSet = await setReadAhead(device, options.readAheadBytes ?? READ_AHEAD_BYTES);
    const facts = { folder, descriptor, offer, readAheadSet, cleared };
    return new MountedTree({ session, binding, invalidations, beforeClose: options.beforeClose }, facts);
  } catch (error) {
    await unmountFolder(folder, { graceMs: 0 }).catch(() => undefined);
    binding.close();
    throw error;
  }
}
