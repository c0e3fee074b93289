/** A server in a process of its own, for tests that kill it: `PORT FOLDER` serves over RDMA and says its port in one line. */
import { serveRegion } from '../../storage-server/index.ts';
import { SERVER_END } from '../../storage-server/tests/verbs-cable.ts';

const [port, folder] = process.argv.slice(2);
const server = await serveRegion({
  roots: [folder!],
  listen: { host: SERVER_END.address, port: Number(port) },
  rdma: { device: SERVER_END.device, required: true, budgetBytes: 64 << 20 },
});
console.log(server.address().port);
