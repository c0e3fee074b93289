/** Servers on one RDMA device and clients on the other, for tests in the virtual machine of deploy/tests/verbs-vm. */
import type { TestContext } from 'node:test';
import { type RunningServer, type ServeOptions, serveRegion } from '../../storage-server/index.ts';
import { CLIENT_END, SERVER_END } from '../../storage-server/tests/verbs-cable.ts';
import { type OpenedTransport, type OpenTransportOptions, openTransport } from '../transport/open-transport.ts';

/** Bytes: regions of tests are far below it. */
const BUDGET_BYTES = 512 << 20;

/** Serves a folder over RDMA, at the server's end of the cable. */
export async function serveOverRdma(
  t: TestContext,
  folder: string,
  options: Partial<ServeOptions> = {},
): Promise<RunningServer> {
  const server = await serveRegion({
    roots: [folder],
    listen: { host: SERVER_END.address, port: 0 },
    rdma: { device: SERVER_END.device, required: true, budgetBytes: BUDGET_BYTES },
    ...options,
  });
  t.after(() => server.close());
  return server;
}

/** Opens a source at the client's end, over RDMA or not at all. */
export function openOverRdma(port: number, options: OpenTransportOptions = {}): Promise<OpenedTransport> {
  return openTransport(`rdma://${SERVER_END.address}:${port}/`, {
    ...options,
    rdma: { transport: 'verbs', device: CLIENT_END.device, ...options.rdma },
  });
}
