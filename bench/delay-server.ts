/**
 * A network that is far away: passes TCP connections on to a port, and every byte in either direction comes out so many
 * milliseconds after it went in, in order, at any rate. Prints { port } as JSON.
 *   node delay-server.ts <port to pass on to> <milliseconds each way>
 */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';

const [targetPort, delayMs] = process.argv.slice(2).map(Number) as [number, number];

/** Bytes that are under way in one direction of a connection: more than any bandwidth here times the delay. */
const UNDER_WAY_BYTES_MAX = 256 << 20;

const now = (): number => performance.timeOrigin + performance.now();

/** What is to be done, in order: the delay is the same for all. */
const events: { readonly dueMs: number; readonly run: () => void }[] = [];
let head = 0;
let isArmed = false;

// timers of an event loop know whole milliseconds only, a thread that sleeps is exact
const shared = new SharedArrayBuffer(16);
const armed = new Int32Array(shared, 0, 1);
const due = new Float64Array(shared, 8, 1);
const alarm = new Worker(new URL('./delay-alarm-worker.ts', import.meta.url), { workerData: shared });
alarm.on('message', () => {
  isArmed = false;
  while (head < events.length && events[head]!.dueMs <= now()) events[head++]!.run();
  if (head > 1024 || head === events.length) {
    events.splice(0, head);
    head = 0;
  }
  arm();
});

function arm(): void {
  if (isArmed || head === events.length) return;
  isArmed = true;
  due[0] = events[head]!.dueMs;
  Atomics.store(armed, 0, 1);
  Atomics.notify(armed, 0);
}

function later(run: () => void): void {
  events.push({ dueMs: now() + delayMs, run });
  arm();
}

function pass(from: Socket, to: Socket): void {
  let underWay = 0;
  from.on('data', (bytes: Buffer) => {
    underWay += bytes.byteLength;
    if (underWay > UNDER_WAY_BYTES_MAX) from.pause();
    later(() => {
      if (to.destroyed) return;
      to.write(bytes, () => {
        underWay -= bytes.byteLength;
        if (from.isPaused() && underWay < UNDER_WAY_BYTES_MAX / 2) from.resume();
      });
    });
  });
  from.on('end', () => later(() => to.end()));
  from.on('close', () => later(() => to.destroySoon()));
  from.on('error', () => later(() => to.destroy()));
}

const server = createServer({ noDelay: true, allowHalfOpen: true }, (client) => {
  const target = connect({ host: '127.0.0.1', port: targetPort, noDelay: true, allowHalfOpen: true });
  pass(client, target);
  pass(target, client);
});

// it says once that it is there
await once(alarm, 'message');
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  console.log(JSON.stringify({ port: typeof address === 'object' ? address?.port : undefined }));
});
process.on('SIGTERM', () => process.exit(0));
