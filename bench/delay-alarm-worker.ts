/** Sleeps until the moment that it is told, to a fraction of a millisecond, and says that it has come. */
import { parentPort, workerData } from 'node:worker_threads';

const shared = workerData as SharedArrayBuffer;
const armed = new Int32Array(shared, 0, 1);
const due = new Float64Array(shared, 8, 1);
const never = new Int32Array(new SharedArrayBuffer(4));

parentPort!.postMessage(0);
for (;;) {
  Atomics.wait(armed, 0, 0);
  Atomics.store(armed, 0, 0);
  const left = due[0]! - (performance.timeOrigin + performance.now());
  if (left > 0) Atomics.wait(never, 0, 0, left);
  parentPort!.postMessage(0);
}
