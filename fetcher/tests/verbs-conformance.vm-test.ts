/** The conformance suite of transports over real queue pairs, and proof that its bytes went from device to device. */
import assert from 'node:assert/strict';
import { endCounters, SERVER_END } from '../../storage-server/tests/verbs-cable.ts';
import type { OpenTransportOptions } from '../transport/open-transport.ts';
import { type MakeSource, testTransport } from './transport-conformance.ts';
import { openOverRdma, serveOverRdma } from './verbs-rig.ts';

/** Bytes of a packet's payload on this path. */
const PACKET_BYTES = 4096;

const verbs =
  (options: OpenTransportOptions = {}): MakeSource =>
  async (t, folder) => {
    const server = await serveOverRdma(t, folder);
    const opened = await openOverRdma(server.address().port, options);
    const before = endCounters(SERVER_END);
    t.after(async () => {
      await opened.transport.close();
      const { bytesOnWire } = opened.counters;
      const packets = endCounters(SERVER_END).rdmaSent - before.rdmaSent;
      // what is read over the connection would not be among them
      assert.ok(packets * PACKET_BYTES >= bytesOnWire, `${packets} packets for ${bytesOnWire} bytes`);
      assert.equal(server.counters().payloadBytes, 0, 'the server sent nothing by itself');
    });
    return { ...opened, update: async () => void (await server.republish()), keepsVersions: true };
  };

testTransport('verbs', verbs());
testTransport(
  'verbs, three queue pairs, busy-polled, odd sizes',
  verbs({ connections: 3, readBytesMax: 123_457, windowBytes: 1_000_000, rdma: { busyPoll: true } }),
);
