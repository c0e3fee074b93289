/** A TCP proxy in front of a server that may come and go, and a network that a test makes slow, silent or broken. */
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { SeededRandom } from '../../vfs/tests/seeded-random.ts';

export type NetworkWeather =
  | 'fair'
  | 'slow' // every piece is late, in order
  | 'silent' // connections stay, and nothing comes over them, then or later
  | 'cut'; // connections break, new ones too

export class WeatherProxy {
  /** Where the server is; undefined while there is none. */
  serverPort: number | undefined;
  readonly port: number;
  readonly #server: Server;
  readonly #random: SeededRandom;
  readonly #sockets = new Set<Socket>();
  #weather: NetworkWeather = 'fair';

  private constructor(server: Server, port: number, random: SeededRandom) {
    this.#server = server;
    this.port = port;
    this.#random = random;
    server.on('connection', (client) => this.#pass(client));
  }

  static async start(random: SeededRandom): Promise<WeatherProxy> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    return new WeatherProxy(server, address.port, random);
  }

  set weather(weather: NetworkWeather) {
    // what was silent has lost bytes, so that it can't go on
    if (this.#weather === 'silent' || weather === 'cut') this.cut();
    this.#weather = weather;
  }

  /** Breaks all connections that there are. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.#server.close();
    this.cut();
  }

  #pass(client: Socket): void {
    if (this.#weather === 'cut' || this.serverPort === undefined) {
      client.destroy();
      return;
    }
    const upstream = connect({ host: '127.0.0.1', port: this.serverPort });
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      this.#sockets.add(from);
      from.on('error', () => {});
      from.on('close', () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      from.on('data', (piece: Buffer) => this.#forward(from, to, piece));
    }
  }

  #forward(from: Socket, to: Socket, piece: Buffer): void {
    if (this.#weather === 'silent') return;
    const write = (): void => {
      from.resume();
      if (to.destroyed || to.write(piece)) return;
      from.pause();
      to.once('drain', () => from.resume());
    };
    if (this.#weather === 'slow') {
      from.pause();
      setTimeout(write, this.#random.below(8));
    } else write();
  }
}
