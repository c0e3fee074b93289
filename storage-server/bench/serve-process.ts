/**
 * A storage server in a process of its own, for benchmarks and tests: `PORT [--pin] ROOT...`. Serves the roots, in
 * memory with --pin, and says where in one line.
 */
import { serveRegion } from '../index.ts';

const [port, ...rest] = process.argv.slice(2);
const server = await serveRegion({
  roots: rest.filter((root) => root !== '--pin'),
  listen: { host: '127.0.0.1', port: Number(port) },
  all: true,
  ...(rest.includes('--pin') ? { pin: { budgetBytes: Number.MAX_SAFE_INTEGER } } : {}),
});
console.log(JSON.stringify({ event: 'ready', port: server.address().port }));
process.on('SIGTERM', () => {
  server.close().finally(() => process.exit(0));
});
