/**
 * Messages that nobody asked for: data pushed into the page cache, entries to forget. The kernel takes locks for them
 * that a request may hold which the answering thread has yet to answer: **never call these on the thread that runs the
 * session**. A store of a range while a cached read of it is unanswered waits for that answer; an entry waits for
 * lookups in its folder. A descriptor is a number that all threads of the process share.
 */
import { Worker } from 'node:worker_threads';
import type { Sent } from './binding.ts';
import { sendMessage } from './device.ts';
import { buildStoreHeader } from './reply.ts';

/**
 * Puts bytes of a file into the page cache, where cached reads find them without asking. For other threads than the
 * answering one. Whole pages from a page's start, or up to the end of the file: of others the kernel keeps nothing.
 * 'unknown' when the kernel does not know the inode: look the file up first (FuseSession.nodeIdOf).
 */
export function notifyStore(descriptor: number, nodeId: number, offset: number, views: readonly Uint8Array[]): Sent {
  let size = 0;
  for (const view of views) size += view.byteLength;
  return sendMessage(descriptor, [buildStoreHeader(nodeId, offset, size), ...views]);
}

/** What the thread runs: plain JavaScript in a text, so that it is there however this file was compiled. */
const CODE = `
const { parentPort, workerData } = require('node:worker_threads');
const { writeSync } = require('node:fs');
parentPort.on('message', (messages) => {
  let failed = 0;
  for (const message of messages) {
    // the kernel may not know the name: then there is nothing to forget
    try { writeSync(workerData, message); } catch (error) { if (error.code !== 'ENOENT') failed++; }
  }
  parentPort.postMessage(failed);
});`;

/**
 * Writes invalidations from a thread of its own. It is there before the first ones: until they are written, the kernel
 * goes on saying that a file which has come is not there.
 */
export class InvalidationThread {
  readonly #descriptor: number;
  #worker: Worker | undefined;
  #waiting = 0;
  #whenIdle: (() => void)[] = [];

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
    this.#worker = this.#start();
  }

  write(messages: readonly Uint8Array[]): void {
    this.#worker ??= this.#start();
    this.#waiting++;
    this.#worker.postMessage(messages);
  }

  /** Resolves once the kernel has taken all that was written, or after the time. Says which. */
  async idle(timeoutMs: number): Promise<boolean> {
    if (this.#waiting === 0) return true;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#whenIdle.push(() => resolve(true));
    const timer = setTimeout(() => resolve(false), timeoutMs);
    await promise;
    clearTimeout(timer);
    return promise;
  }

  /** Not awaited: a thread that waits in the kernel ends when that lets it go. */
  close(): void {
    void this.#worker?.terminate();
    this.#worker = undefined;
    this.#settle();
  }

  #start(): Worker {
    const worker = new Worker(CODE, { eval: true, workerData: this.#descriptor });
    worker.unref();
    worker.on('message', () => {
      this.#waiting--;
      if (this.#waiting === 0) this.#settle();
    });
    worker.on('error', () => this.close());
    return worker;
  }

  #settle(): void {
    this.#waiting = 0;
    for (const resolve of this.#whenIdle.splice(0)) resolve();
  }
}
