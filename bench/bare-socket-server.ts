/**
 * What a mount is compared with: a process that reads a file and writes what it is asked for to a socket, with nothing
 * in between. A request is two 64-bit numbers, offset and length; the answer is just the bytes.
 *   node bare-socket-server.ts <file>
 */
import { openSync, readSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';

const PIECE_BYTES = 1 << 20;
const file = openSync(process.argv[2]!, 'r');

const server = createServer({ noDelay: true }, (socket) => {
  // while one is on its way out the next is read
  const pieces = [Buffer.alloc(PIECE_BYTES), Buffer.alloc(PIECE_BYTES)];
  socket.on('error', () => {});
  socket.on('data', (request: Buffer) => {
    void answer(socket, pieces, Number(request.readBigUInt64LE(0)), Number(request.readBigUInt64LE(8)));
  });
});

async function answer(socket: Socket, pieces: readonly Buffer[], offset: number, length: number): Promise<void> {
  let sent = Promise.resolve();
  for (let at = 0, k = 0; at < length; k++) {
    const piece = pieces[k % 2]!;
    const bytes = readSync(file, piece, 0, Math.min(PIECE_BYTES, length - at), offset + at);
    if (bytes === 0) throw new Error('a request beyond the end of the file');
    await sent;
    sent = new Promise((resolve) => socket.write(piece.subarray(0, bytes), () => resolve()));
    at += bytes;
  }
  await sent;
}

server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  console.log(JSON.stringify({ port: typeof address === 'object' ? address?.port : undefined }));
});
process.on('SIGTERM', () => process.exit(0));
