/**
 * A proxy in front of a real server that does what servers, networks and other proxies get wrong. What happens to which
 * request follows from a seed and from the order of requests, so that a run can be repeated: a plan is asked once for each
 * request (HTTP and S3), or for each connection (queue pairs). Signed requests go on as they are, for the server to check.
 */
import { once } from 'node:events';
import {
  Agent,
  createServer,
  type IncomingMessage,
  request as requestOf,
  type Server,
  type ServerResponse,
} from 'node:http';
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  type Socket,
  type Server as TcpServer,
} from 'node:net';

/** What goes wrong. */
export const FAULTS = [
  'reset', // the connection, in the middle of an answer or before it
  'truncate', // the answer ends in the middle
  'stall', // the answer stops coming
  'silence', // there is no answer
  'drip', // the answer comes a byte at a time
  'garbage', // what comes is not the protocol
  'busy', // 503, SlowDown
  'wrong-range', // bytes of another range, and it says so
  'other-version', // the same bytes under another ETag
  'whole', // 200 and all bytes for a range
  'expired', // the token, or the credentials
] as const;
export type Fault = (typeof FAULTS)[number];

/** Those that a stream of bytes can have, whatever is spoken. */
export const WIRE_FAULTS = ['reset', 'truncate', 'stall', 'silence', 'drip', 'garbage'] as const satisfies Fault[];
export type WireFault = (typeof WIRE_FAULTS)[number];

/** A number from 0 to below `bound`, from the seed. */
export type Below = (bound: number) => number;

/** Numbers that follow from a seed. */
export function belowFrom(seed: number): Below {
  let state = seed >>> 0;
  return (bound) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * bound);
  };
}

/** What to do to the next request or connection. */
export type Plan<F extends Fault = Fault> = () => F | undefined;

/** One of `faults` for a part of all, out of a hundred, and for the one with the number `sure` in any case. */
export function planFrom<F extends Fault>(seed: number, percent: number, faults: readonly F[], sure = 1): Plan<F> {
  const below = belowFrom(seed);
  let count = 0;
  return () => {
    const [chance, which] = [below(100), below(faults.length)];
    return count++ === sure || chance < percent ? faults[which] : undefined;
  };
}

/** Between two bytes of what drips, milliseconds. */
const DRIP_MS = 20;

export interface ProxyOptions {
  /** How expired credentials and busy servers are told. */
  readonly speaks: 'http' | 's3';
  /** Replaced at any time. */
  readonly plan?: Plan;
  readonly seed?: number;
  /** All bytes of what a path names; without it nothing is answered whole. */
  readonly contentOf?: (path: string) => Uint8Array | undefined;
}

export class MisbehavingProxy {
  plan: Plan;
  readonly origin: string;
  /** What was done so far. */
  readonly done: Fault[] = [];
  readonly #server: Server;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #upstream: { readonly host: string; readonly port: number };
  readonly #options: ProxyOptions;
  readonly #below: Below;
  readonly #timers = new Set<NodeJS.Timeout>();

  private constructor(server: Server, target: string, options: ProxyOptions) {
    const { hostname, port } = new URL(target);
    this.#upstream = { host: hostname, port: Number(port) };
    this.#server = server;
    this.#options = options;
    this.#below = belowFrom(options.seed ?? 1);
    this.plan = options.plan ?? (() => undefined);
    this.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** In front of the server at `target`, `http://host:port`. */
  static async start(target: string, options: ProxyOptions): Promise<MisbehavingProxy> {
    const server = createServer({ requestTimeout: 0 });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const proxy = new MisbehavingProxy(server, target, options);
    server.on('request', (request, response) => proxy.#answer(request, response));
    return proxy;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#agent.destroy();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const fault = this.plan();
    if (fault !== undefined) this.done.push(fault);
    const { socket } = request;
    if (fault === 'silence') return;
    if (fault === 'garbage') {
      socket.end(this.#garbage());
      return;
    }
    if (fault === 'reset' && this.#below(2) === 0) {
      socket.resetAndDestroy();
      return;
    }
    if (fault === 'busy') {
      this.#refuse(response, 503, 'SlowDown', { 'Retry-After': '0' });
      return;
    }
    if (fault === 'expired') {
      if (this.#options.speaks === 's3') this.#refuse(response, 400, 'ExpiredToken');
      else this.#refuse(response, 401, 'ExpiredToken', { 'WWW-Authenticate': 'Bearer error="invalid_token"' });
      return;
    }
    const { method, url: path, headers } = request;
    const upstream = requestOf({ ...this.#upstream, method, path, headers, agent: this.#agent }, (answer) =>
      this.#passOn(answer, response, fault, path!),
    );
    upstream.on('error', () => socket.destroy());
    response.on('close', () => upstream.destroy());
    request.pipe(upstream);
  }

  #refuse(response: ServerResponse, status: number, code: string, headers: Record<string, string> = {}): void {
    const body = `<?xml version="1.0"?><Error><Code>${code}</Code><Message>by the proxy</Message></Error>`;
    response.writeHead(status, { 'Content-Type': 'application/xml', ...headers });
    response.end(body);
  }

  #passOn(answer: IncomingMessage, response: ServerResponse, fault: Fault | undefined, path: string): void {
    const headers = { ...answer.headers };
    let status = answer.statusCode!;
    if (fault === 'other-version' && headers.etag !== undefined) headers.etag = '"of-another-version"';
    if (fault === 'wrong-range') {
      const [, start, end, total] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(headers['content-range'] ?? '') ?? [];
      // one further to the front, or to the back from the first byte
      const by = start === '0' ? 1 : -1;
      if (start !== undefined) headers['content-range'] = `bytes ${Number(start) + by}-${Number(end) + by}/${total}`;
    }
    const whole = fault === 'whole' && status === 206 ? this.#options.contentOf?.(path) : undefined;
    if (whole !== undefined) {
      status = 200;
      headers['content-length'] = String(whole.byteLength);
      delete headers['content-range'];
    }
    response.writeHead(status, headers);
    if (whole !== undefined) {
      answer.resume();
      response.end(whole);
      return;
    }
    if (fault === undefined || !['reset', 'truncate', 'stall', 'drip'].includes(fault)) {
      answer.pipe(response);
      return;
    }
    const pieces: Buffer[] = [];
    answer.on('data', (piece: Buffer) => pieces.push(piece));
    answer.on('end', () => this.#spoil(Buffer.concat(pieces), response, fault));
  }

  /** Sends a part of the body, or all of it, badly. */
  #spoil(body: Buffer, response: ServerResponse, fault: Fault): void {
    const part = body.subarray(0, this.#below(body.length + 1));
    if (fault === 'drip') {
      let sent = 0;
      const timer = setInterval(() => {
        if (sent < body.length && !response.destroyed) response.write(body.subarray(sent, ++sent));
        else {
          clearInterval(timer);
          this.#timers.delete(timer);
          response.end();
        }
      }, DRIP_MS);
      this.#timers.add(timer);
      return;
    }
    const then = (): void => {
      if (fault === 'reset') response.socket?.resetAndDestroy();
      if (fault === 'truncate') response.socket?.destroy();
    };
    if (part.length === 0) response.flushHeaders();
    if (part.length === 0) setImmediate(then);
    else response.write(part, then);
  }

  #garbage(): string {
    const kinds = [
      '220 smtp here\r\n',
      'HTTP/1.1 206 Partial\r\nContent-Length: -5\r\n\r\n',
      'HTTP/1.1 206 Partial\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n',
      'HTTP/1.1 206 Partial\r\n\0\x01: \x7f\r\n\r\n',
      'HTTP/9.9 206 Partial\r\n\r\n',
      'HTTP/1.1 2O6 Partial\r\n\r\n',
      'HTTP/1.1 206 Partial\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
    ];
    return kinds[this.#below(kinds.length)]!;
  }
}

/** The same for any stream of bytes: each connection may have a fault behind some of the server's bytes. */
export class MisbehavingWire {
  plan: Plan<WireFault>;
  readonly port: number;
  readonly done: WireFault[] = [];
  readonly #server: TcpServer;
  readonly #below: Below;
  readonly #sockets = new Set<Socket>();
  readonly #ongoing = new Set<() => void>();
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #bytesMost: number;

  private constructor(server: TcpServer, seed: number, bytesMost: number, plan: Plan<WireFault>) {
    this.#server = server;
    this.#below = belowFrom(seed);
    this.#bytesMost = bytesMost;
    this.plan = plan;
    this.port = (server.address() as AddressInfo).port;
  }

  /** A fault comes behind fewer than `bytesMost` bytes. */
  static async start(
    serverPort: number,
    {
      seed = 1,
      bytesMost = 1,
      plan = () => undefined,
    }: { seed?: number; bytesMost?: number; plan?: Plan<WireFault> } = {},
  ): Promise<MisbehavingWire> {
    const server = createTcpServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const wire = new MisbehavingWire(server, seed, bytesMost, plan);
    server.on('connection', (client) => wire.#pass(client, serverPort));
    return wire;
  }

  /** Asks the plan again for connections that are there and well. */
  replan(): void {
    for (const again of this.#ongoing) again();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #pass(client: Socket, serverPort: number): void {
    const upstream = connect({ host: '127.0.0.1', port: serverPort });
    let fault: WireFault | undefined;
    let left = 0;
    const replan = (): void => {
      if (fault !== undefined) return;
      fault = this.plan();
      left = this.#below(this.#bytesMost);
      if (fault !== undefined) this.done.push(fault);
    };
    replan();
    this.#ongoing.add(replan);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        this.#sockets.delete(socket);
        this.#ongoing.delete(replan);
        other.destroy();
      });
    }
    client.on('data', (piece: Buffer) => void upstream.write(piece));
    const queue: Buffer[] = [];
    let dripping = false;
    upstream.on('data', (piece: Buffer) => {
      const good = fault === undefined ? piece.length : Math.min(left, piece.length);
      if (fault !== undefined) left -= good;
      if (good > 0 && fault !== 'silence' && !client.write(piece.subarray(0, good))) {
        upstream.pause();
        client.once('drain', () => upstream.resume());
      }
      if (good === piece.length) return;
      if (fault === 'reset') client.resetAndDestroy();
      else if (fault === 'truncate') client.end();
      else if (fault === 'garbage') client.write(piece.subarray(good).map((byte) => byte ^ 0xa5));
      else if (fault === 'drip') {
        queue.push(Buffer.from(piece.subarray(good)));
        if (!dripping) this.#drip(client, queue);
        dripping = true;
      }
    });
  }

  #drip(client: Socket, queue: Buffer[]): void {
    const timer = setInterval(() => {
      const [first] = queue;
      if (client.destroyed) clearInterval(timer);
      else if (first !== undefined) {
        client.write(first.subarray(0, 1));
        if (first.length === 1) queue.shift();
        else queue[0] = first.subarray(1);
      }
    }, DRIP_MS);
    this.#timers.add(timer);
  }
}
