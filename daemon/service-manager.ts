/**
 * What systemd is told of a service of type notify (sd_notify(3)): one datagram to the socket that NOTIFY_SOCKET names.
 * Node.js has no such sockets, so the C library's are called, and nothing is loaded where there is no service manager.
 * A manager that can't be told is no reason to stop: a word in the log is all that comes of it.
 */
import type { Log } from './log.ts';

export type ServiceState = 'ready' | 'reloading' | 'stopping';

const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2000000;
/** Bytes of sun_path in a Linux socket address. */
const PATH_BYTES_MAX = 108;

/** Tells the state, with a line for people. */
export async function tellState(log: Log, state: ServiceState, status: string): Promise<void> {
  try {
    await tellServiceManager(state, status);
  } catch (error) {
    log.warn({ err: error }, 'the service manager was not told');
  }
}

/** Resolves to false when there is nobody to tell. Throws what is in the way. */
export async function tellServiceManager(
  state: ServiceState,
  status: string,
  path = process.env.NOTIFY_SOCKET,
): Promise<boolean> {
  if (path === undefined || path === '' || process.platform !== 'linux') return false;
  const { default: koffi } = await import('koffi');
  const c = koffi.load(null);
  const socket = c.func('int socket(int domain, int type, int protocol)');
  const sendto = c.func(
    'intptr_t sendto(int socket, const uint8_t *bytes, size_t length, int flags, const uint8_t *address, uint32_t addressLength)',
  );
  const close = c.func('int close(int socket)');
  const handle: number = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (handle < 0) throw new Error(`no socket: errno ${koffi.errno()}`);
  try {
    const address = socketAddress(path);
    const message = Buffer.from(messageOf(state, status));
    const sent: number = sendto(handle, message, message.length, 0, address, address.length);
    if (sent < 0) throw new Error(`${path} takes nothing: errno ${koffi.errno()}`);
  } finally {
    close(handle);
  }
  return true;
}

function messageOf(state: ServiceState, status: string): string {
  const line = status.replace(/\s+/g, ' ');
  switch (state) {
    case 'ready':
      return `READY=1\nSTATUS=${line}\n`;
    case 'reloading':
      return `RELOADING=1\nMONOTONIC_USEC=${process.hrtime.bigint() / 1000n}\nSTATUS=${line}\n`;
    case 'stopping':
      return `STOPPING=1\nSTATUS=${line}\n`;
  }
}

/** struct sockaddr_un: the family in the machine's order, then the path; "@" stands for the NUL of an abstract name. */
function socketAddress(path: string): Buffer {
  const name = Buffer.from(path.startsWith('@') ? `\0${path.slice(1)}` : `${path}\0`);
  if (name.length > PATH_BYTES_MAX) throw new Error(`${path} is longer than a socket's name may be`);
  const address = Buffer.alloc(2 + name.length);
  new Uint16Array(address.buffer, address.byteOffset, 1)[0] = AF_UNIX;
  name.copy(address, 2);
  return address;
}
