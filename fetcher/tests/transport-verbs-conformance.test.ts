/** The conformance suite over RDMA, on a model of devices: registered memory, and copied memory with odd limits. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { serveRegion } from '../../storage-server/index.ts';
import { ModelFabric, type ModelLimits } from '../../storage-server/tests/model-fabric.ts';
import { type OpenTransportOptions, openTransport } from '../transport/open-transport.ts';
import { type MakeSource, testTransport } from './transport-conformance.ts';

const verbs =
  (options: OpenTransportOptions = {}, limits: Partial<ModelLimits> = {}): MakeSource =>
  async (t: TestContext, folder) => {
    const fabric = new ModelFabric();
    const rdma = { required: true, budgetBytes: 2 ** 30, open: fabric.open('server') };
    const server = await serveRegion({ roots: [folder], listen: { host: '127.0.0.1', port: 0 }, rdma });
    const opened = await openTransport(`rdma://127.0.0.1:${server.address().port}/`, {
      ...options,
      rdma: { transport: 'verbs', open: fabric.open('client', limits), ...options.rdma },
    });
    t.after(async () => {
      await opened.transport.close();
      await server.close();
      assert.ok(fabric.reads > 0, 'READs went over the devices');
      for (const device of fabric.devices) assert.ok(device.closed, 'everything was given back');
    });
    return { ...opened, update: async () => void (await server.republish()), keepsVersions: true };
  };

testTransport('verbs', verbs());
testTransport(
  'verbs, two queue pairs, odd sizes, three READs at a time, busy-polled, nothing registered',
  verbs(
    { connections: 2, readBytesMax: 123_457, windowBytes: 1_000_000, rdma: { busyPoll: true } },
    { readsMax: 3, messageBytesMax: 50_001, lockedBytesMax: 1_000_000 },
  ),
);
