/**
 * Puts bytes of mounted files into the kernel's page cache from a thread of its own: the kernel may wait, while it takes
 * them, for an answer that the mount thread owes it. Bytes of the pool are not copied on their way there.
 */
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import { PUSH_MS } from './limits.ts';
import type { PushRequest, PushStart } from './push-thread.ts';

export class PagePushThread {
  readonly #start: PushStart;
  #worker: Worker | undefined;
  #port: MessagePort | undefined;
  #next = 1;
  readonly #waiting = new Map<number, (taken: boolean) => void>();
  #closed = false;

  /** Nothing is started before the first push. */
  constructor(descriptor: number, memory: WebAssembly.Memory) {
    this.#start = { descriptor, memory };
  }

  /**
   * Resolves to whether the kernel has taken them, however long that takes on a busy machine; false once this is closed.
   * Until then the bytes have to stay as they are: what is late is read all the same.
   */
  push(nodeId: number, offset: number, bytes: Uint8Array): Promise<boolean> {
    if (this.#closed) return Promise.resolve(false);
    const port = this.#begun();
    const id = this.#next++;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#waiting.set(id, resolve);
    const inPool = bytes.buffer === this.#start.memory.buffer;
    const request: PushRequest = {
      id,
      nodeId,
      offset,
      bytes: inPool ? { address: bytes.byteOffset, length: bytes.byteLength } : Uint8Array.from(bytes),
    };
    port.postMessage(request);
    return promise;
  }

  /** Resolves when nothing is on its way into the kernel any more, and after PUSH_MS at the latest. */
  async idle(): Promise<void> {
    const until = performance.now() + PUSH_MS;
    while (this.#waiting.size > 0 && performance.now() < until) await new Promise((resolve) => setTimeout(resolve, 5));
  }

  close(): void {
    this.#closed = true;
    for (const id of [...this.#waiting.keys()]) this.#settle(id, false);
    this.#port?.close();
    void this.#worker?.terminate();
  }

  #settle(id: number, taken: boolean): void {
    const settle = this.#waiting.get(id);
    this.#waiting.delete(id);
    settle?.(taken);
  }

  #begun(): MessagePort {
    if (this.#port !== undefined) return this.#port;
    const { port1, port2 } = new MessageChannel();
    this.#worker = new Worker(pushThreadUrl(), { workerData: { ...this.#start, port: port2 }, transferList: [port2] });
    this.#worker.unref();
    this.#worker.on('error', () => this.close());
    port1.on('message', ({ id, taken }: { id: number; taken: boolean }) => this.#settle(id, taken));
    port1.unref();
    this.#port = port1;
    return port1;
  }
}

/** Beside this file, whichever form it has. */
function pushThreadUrl(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './push-thread.ts' : './push-thread.js', import.meta.url);
}
