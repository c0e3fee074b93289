/** Stores a file into the page cache of a mount, from a thread that does not answer requests. */
import { parentPort, workerData } from 'node:worker_threads';
import { notifyStore } from '../fuse/notify.ts';

const { descriptor, nodeId, bytes } = workerData as { descriptor: number; nodeId: number; bytes: Uint8Array };
const STEP = 1024 * 1024;
let sent = 'nothing';
for (let at = 0; at < bytes.length; at += STEP) {
  const half = bytes.subarray(at, Math.min(at + STEP / 2, bytes.length));
  sent = notifyStore(descriptor, nodeId, at, [half, bytes.subarray(at + STEP / 2, at + STEP)]);
  if (sent !== 'taken') break;
}
parentPort!.postMessage(sent);
