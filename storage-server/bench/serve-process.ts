/** A storage server in a process of its own, for benchmarks and tests: serves the given roots, says where in one line. */
import { serveRegion } from '../index.ts';

const [port, ...roots] = process.argv.slice(2);
const server = await serveRegion({ roots, listen: { host: '127.0.0.1', port: Number(port) }, all: true });
console.log(JSON.stringify({ event: 'ready', port: server.address().port }));
process.on('SIGTERM', () => {
  server.close().finally(() => process.exit(0));
});
