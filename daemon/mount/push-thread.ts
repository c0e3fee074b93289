/** The thread that puts pages into the kernel's cache (page-push.ts): one message, one write, one answer. */
import { type MessagePort, workerData } from 'node:worker_threads';
import { notifyStore } from '../../vfs/fuse/index.ts';

export interface PushStart {
  /** Of /dev/fuse. */
  readonly descriptor: number;
  readonly memory: WebAssembly.Memory;
}

export interface PushRequest {
  readonly id: number;
  readonly nodeId: number;
  readonly offset: number;
  /** A place in the memory, or bytes that are not there. */
  readonly bytes: { readonly address: number; readonly length: number } | Uint8Array;
}

const { descriptor, memory, port } = workerData as PushStart & { readonly port: MessagePort };

port.on('message', ({ id, nodeId, offset, bytes }: PushRequest) => {
  const view = 'address' in bytes ? new Uint8Array(memory.buffer, bytes.address, bytes.length) : bytes;
  port.postMessage({ id, taken: notifyStore(descriptor, nodeId, offset, [view]) === 'taken' });
});
