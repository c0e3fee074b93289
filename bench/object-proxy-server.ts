/**
 * A store that is far away: passes HTTP requests on to a port, each so many milliseconds later, and those of a new
 * connection as many again, which is what opening it would take. Any rate, any number of connections. Counts requests,
 * connections and bytes of bodies that went to the client. A part of an object that comes as 200 (rclone's) goes on as the 206
 * that it is, which some clients insist on. Prints { port, control }; the control port answers with what
 * was counted since it was asked last.
 *   node object-proxy-server.ts <port to pass on to> <milliseconds>
 */
import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

const [targetPort, delayMs] = process.argv.slice(2).map(Number) as [number, number];

let counted = { requests: 0, connections: 0, bytes: 0 };
const openAt = new WeakMap<Socket, number>();
const agent = new Agent({ keepAlive: true });

function pass(incoming: IncomingMessage, outgoing: ServerResponse): void {
  counted.requests++;
  const arrived = performance.now();
  const due = Math.max(arrived, openAt.get(incoming.socket) ?? arrived) + delayMs;
  if (delayMs === 0) forward(incoming, outgoing);
  else setTimeout(forward, due - arrived, incoming, outgoing);
}

function forward(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const { method, url, rawHeaders } = incoming;
  // as they are: the host's name is part of what a client signs
  const asked = request({ host: '127.0.0.1', port: targetPort, method, path: url, agent, setHost: false });
  for (let k = 0; k < rawHeaders.length; k += 2) asked.setHeader(rawHeaders[k]!, rawHeaders[k + 1]!);
  asked.on('response', (answer) => {
    const isPart = answer.statusCode === 200 && answer.headers['content-range'] !== undefined;
    outgoing.writeHead(isPart ? 206 : answer.statusCode!, answer.rawHeaders);
    answer.on('data', (bytes: Buffer) => {
      counted.bytes += bytes.length;
    });
    answer.pipe(outgoing);
  });
  asked.on('error', () => outgoing.destroy());
  outgoing.on('close', () => asked.destroy());
  incoming.pipe(asked);
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const proxy = createServer({ keepAliveTimeout: 60_000 }, pass);
proxy.on('connection', (socket: Socket) => {
  counted.connections++;
  openAt.set(socket, performance.now() + delayMs);
});
const control = createServer((_, answer) => {
  answer.end(JSON.stringify(counted));
  counted = { requests: 0, connections: 0, bytes: 0 };
});
console.log(JSON.stringify({ port: await listen(proxy), control: await listen(control) }));
process.on('SIGTERM', () => process.exit(0));
