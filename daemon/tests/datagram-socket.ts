/** A Unix datagram socket to receive on, as a service manager has: Node.js has none, so the C library's is called. */
import koffi from 'koffi';

const c = koffi.load(null);
const socket = c.func('int socket(int domain, int type, int protocol)');
const bind = c.func('int bind(int socket, const uint8_t *address, uint32_t length)');
const recv = c.func('intptr_t recv(int socket, _Out_ uint8_t *into, size_t length, int flags)');
const close = c.func('int close(int socket)');

const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const MSG_DONTWAIT = 0x40;

export class DatagramSocket {
  readonly #handle: number;

  constructor(path: string) {
    this.#handle = socket(AF_UNIX, SOCK_DGRAM, 0);
    const address = Buffer.concat([Buffer.from(new Uint16Array([AF_UNIX]).buffer), Buffer.from(`${path}\0`)]);
    if (bind(this.#handle, address, address.length) !== 0) throw new Error(`bind: errno ${koffi.errno()}`);
  }

  /** The datagrams that are there. */
  receiveAll(): string[] {
    const texts: string[] = [];
    const into = Buffer.alloc(4096);
    for (;;) {
      const length: number = recv(this.#handle, into, into.length, MSG_DONTWAIT);
      if (length < 0) return texts;
      texts.push(into.toString('utf8', 0, length));
    }
  }

  close(): void {
    close(this.#handle);
  }
}
