/** The machine itself: two RDMA devices with a cable between them, of which TCP uses the cable only. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { CLIENT_END, countedDuring, cutCable, plugCable, SERVER_END } from './verbs-cable.ts';

const BYTES = 5_000_000;

async function listening(t: { after(end: () => void): void }, onClient: (client: Socket) => void): Promise<number> {
  const server = createServer(onClient).listen(0, SERVER_END.address);
  t.after(() => server.close());
  await once(server, 'listening');
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  return address.port;
}

test('there are two RDMA devices', () => {
  assert.deepEqual(readdirSync('/sys/class/infiniband').sort(), [SERVER_END.device, CLIENT_END.device]);
});

test('TCP between the two addresses goes over the cable, and past the RDMA devices', async (t) => {
  const port = await listening(t, (client) => client.end(Buffer.alloc(BYTES, 7)));
  let received = 0;
  const counted = await countedDuring(SERVER_END, async () => {
    const socket = connect({ host: SERVER_END.address, port });
    socket.on('data', (piece) => {
      received += piece.byteLength;
    });
    await once(socket, 'close');
    assert.equal(socket.remoteAddress ?? SERVER_END.address, SERVER_END.address);
  });
  assert.equal(received, BYTES);
  assert.ok(counted.wireSent > BYTES, `${counted.wireSent} bytes on the wire`);
  assert.deepEqual([counted.rdmaSent, counted.rdmaReceived], [0, 0]);
});

test('the cable can be cut, and put in again', async (t) => {
  t.after(plugCable);
  let sent = 0;
  const port = await listening(t, (client) => client.end(String(++sent)));
  const ask = async (): Promise<string> => {
    const socket = connect({ host: SERVER_END.address, port });
    const [answer] = (await once(socket, 'data')) as [Buffer];
    return String(answer);
  };
  assert.equal(await ask(), '1');
  cutCable();
  await assert.rejects(ask());
  plugCable();
  assert.equal(await ask(), '2');
});
