/** nginx over a folder, for tests of plain HTTP: a server that nobody here wrote. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Why there is no nginx here; false when there is one. */
export function whyNoNginx(): string | false {
  return spawnSync('nginx', ['-v']).status === 0 ? false : 'nginx is not installed';
}

export class Nginx {
  readonly origin: string;
  readonly #child: ChildProcess;
  readonly #folder: string;

  private constructor(origin: string, child: ChildProcess, folder: string) {
    this.origin = origin;
    this.#child = child;
    this.#folder = folder;
  }

  /** Serves `root` on a free port. */
  static async start(root: string): Promise<Nginx> {
    const folder = mkdtempSync(join(tmpdir(), 'qanat-nginx-'));
    for (let attempt = 1; ; attempt++) {
      const port = await freePort();
      const child = startNginx(folder, root, port);
      if (await answers(port, child)) return new Nginx(`http://127.0.0.1:${port}`, child, folder);
      child.kill('SIGKILL');
      // somebody else took the port meanwhile
      if (attempt === 5) throw new Error('nginx does not start');
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await exited;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function startNginx(folder: string, root: string, port: number): ChildProcess {
  mkdirSync(join(folder, 'temporary'), { recursive: true });
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${folder}/temporary/${name};`)
    .join(' ');
  // as root its workers are nobody, who may not look into folders of tests
  const user = process.geteuid?.() === 0 ? 'user root;' : '';
  chmodSync(folder, 0o755);
  writeFileSync(
    join(folder, 'nginx.conf'),
    `${user} daemon off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log;
     events { worker_connections 256; }
     http { access_log off; ${temporary} server { listen 127.0.0.1:${port}; root ${root}; } }`,
  );
  return spawn('nginx', ['-e', join(folder, 'error.log'), '-c', join(folder, 'nginx.conf')], { stdio: 'ignore' });
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

async function answers(port: number, child: ChildProcess): Promise<boolean> {
  while (child.exitCode === null) {
    const socket = connect({ host: '127.0.0.1', port });
    const connected = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'error').then(() => false),
    ]).catch(() => false);
    socket.destroy();
    if (connected) return true;
    await sleep(20);
  }
  return false;
}
