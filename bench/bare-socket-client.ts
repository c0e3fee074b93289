/**
 * Reads a file from a bare socket, and prints { ms } for all of it in order, or the figures of random reads.
 *   node bare-socket-client.ts <port> <bytes of the file> [reads seed]
 */
import { connect } from 'node:net';
import { randomReads } from './random-reads.ts';

const [port, fileBytes, reads, seed] = process.argv.slice(2).map(Number) as [number, number, number?, number?];
const RECEIVE_BYTES = 1 << 20;

let left = 0;
let take: (bytes: Uint8Array) => void = () => {};
let whole = (): void => {};
const socket = connect({
  host: '127.0.0.1',
  port,
  noDelay: true,
  onread: {
    buffer: Buffer.alloc(RECEIVE_BYTES),
    callback: (length, buffer) => {
      take(buffer.subarray(0, length));
      left -= length;
      if (left === 0) whole();
      return true;
    },
  },
});
await new Promise((resolve) => socket.once('connect', resolve));

function request(offset: number, length: number): Promise<void> {
  const bytes = Buffer.alloc(16);
  bytes.writeBigUInt64LE(BigInt(offset), 0);
  bytes.writeBigUInt64LE(BigInt(length), 8);
  left = length;
  return new Promise((resolve) => {
    whole = resolve;
    socket.write(bytes);
  });
}

if (reads === undefined) {
  const began = performance.now();
  await request(0, fileBytes);
  console.log(JSON.stringify({ ms: performance.now() - began }));
} else {
  const figures = await randomReads({ fileBytes, reads, seed: seed! }, async (offset, into) => {
    let at = 0;
    take = (bytes) => {
      into.set(bytes, at);
      at += bytes.byteLength;
    };
    await request(offset, into.byteLength);
  });
  console.log(JSON.stringify(figures));
}
socket.destroy();
