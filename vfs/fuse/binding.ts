/**
 * The seam between the session and a FUSE kernel: whole requests in, whole replies and notifications out. Two
 * bindings: the real device (device.ts) and a kernel in the same process, for tests (loopback.ts).
 */

export interface BindingReceiver {
  /** One request, whole; the bytes are valid only during the call. Must not throw. */
  request(bytes: Uint8Array): void;
  /** The kernel has let go: unmounted, or the connection was aborted; nothing more comes. */
  ended(reason?: Error): void;
}

/** How the kernel took a message: it may not know the request (any more), find fault with the message, or be gone. */
export type Sent = 'taken' | 'unknown' | 'refused' | 'ended';

export interface FuseBinding {
  /** Bytes come from now on, never from within this call. */
  start(receiver: BindingReceiver): void;
  /** Writes one message, whose parts lie one after another; all of it is with the kernel when this returns. */
  send(parts: readonly Uint8Array[]): Sent;
  /** Lets go of the descriptor. Without an unmount the mount is dead from then on. */
  close(): void;
  /** Registers backing files for passthrough; absent where the kernel or the user's privileges do not allow it. */
  readonly backing?: BackingFiles;
}

export interface BackingFiles {
  /** Throws MountError when the kernel refuses it. */
  open(descriptor: number): number;
  close(id: number): void;
}
