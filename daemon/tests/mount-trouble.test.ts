/**
 * Mounts when the world changes under them: new generations, servers that hang, die and come back, processes that are
 * killed, readers that do not let go, users without privileges. Nothing hangs, and nothing lies.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { accessSync, chmodSync, constants, mkdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { QANAT } from './command-run.ts';
import { MountRig, until, whyNoMounts, within } from './mount-rig.ts';

const DIGEST = /^[0-9a-f]{64}$/;
/** Beyond what the kernel reads ahead at the file's start, so that reads there ask the mount. */
const FAR = 6_000_000;
const FILE_BYTES = 8_000_000;
/** Readers that hold a file when the mount ends are not waited for. */
const SOON = ['--drain-timeout', '100ms'];

/** Puts other bytes into the place of a file, whole. */
function replace(path: string, bytes: Uint8Array): void {
  writeFileSync(`${path}.new`, bytes);
  renameSync(`${path}.new`, path);
}

/** A storage server in a process of its own, on a free port or a given one. */
async function serve(rig: MountRig, folder: string, port = 0) {
  const args = [QANAT, 'serve', folder, '--all', '--listen', `127.0.0.1:${port}`, '--http', 'none'];
  const child = rig.spawn(process.execPath, args);
  const line = await within(
    new Promise<string>((resolve) => child.stdout!.once('data', (data) => resolve(String(data)))),
    'a server',
  );
  const { rdma } = JSON.parse(line) as { rdma: string };
  return { child, url: `rdma://${rdma}`, port: Number(rdma.split(':')[1]) };
}

function lakeOf(rig: MountRig): { folder: string; changing: string; same: string } {
  const changing = rig.write('lake/changing.bin', randomBytes(FILE_BYTES));
  const same = rig.write('lake/same.bin', randomBytes(FILE_BYTES));
  return { folder: rig.path('lake'), changing, same };
}

describe('mounts in trouble', { skip: whyNoMounts() }, () => {
  for (const kind of ['server', 'folder'] as const) {
    // SEMANTICS 17, 18
    test(`a new generation of a ${kind}: ESTALE for what has changed, all else goes on`, async () => {
      await using rig = new MountRig();
      const { folder, changing, same } = lakeOf(rig);
      const server = kind === 'server' ? await serve(rig, folder) : undefined;
      const mount = await rig.mount(server?.url ?? folder, 'mount', '--watch-interval', '200ms', ...SOON);
      const reader = rig.reader();
      const [a, b] = [`${mount.folder}/changing.bin`, `${mount.folder}/same.bin`];
      for (const file of [a, b]) {
        assert.equal(await reader.ask(`open ${file}`), 'ok');
        assert.match(await reader.ask(`read ${file} 0 1000`), DIGEST);
      }
      replace(`${folder}/added.txt`, Buffer.from('added'));
      replace(changing, randomBytes(FILE_BYTES));
      server?.child.kill('SIGHUP');
      await until(() => /"changed":1,"msg":"the source has changed"/.test(mount.errors()), 'the new generation');
      assert.equal(await reader.ask(`read ${a} ${FAR} 1000`), 'ESTALE');
      assert.match(await reader.ask(`read ${b} ${FAR} 1000`), DIGEST);
      for (const [ours, theirs] of [
        [a, changing],
        [b, same],
      ]) {
        const compared = await rig.run('cmp', [ours!, theirs!]);
        assert.equal(compared.code, 0, compared.errors + compared.text);
      }
      assert.equal((await rig.run('cat', [`${mount.folder}/added.txt`])).text, 'added');
      const { code } = await mount.end('SIGTERM');
      assert.equal(code, 0);
    });
  }

  // SEMANTICS 22, 25
  test('a server that dies is an error in bounded time, and all is well when it is back', async () => {
    await using rig = new MountRig();
    const { folder, same } = lakeOf(rig);
    const server = await serve(rig, folder);
    const often = ['--stall-timeout', '500ms', '--watch-interval', '200ms'];
    const mount = await rig.mount(server.url, 'mount', ...often, ...SOON);
    const reader = rig.reader();
    const file = `${mount.folder}/same.bin`;
    assert.equal(await reader.ask(`open ${file}`), 'ok');
    assert.match(await reader.ask(`read ${file} 0 1000`), DIGEST);
    server.child.kill('SIGKILL');
    assert.match(await reader.ask(`read ${file} ${FAR} 1000`), /^(EIO|ETIMEDOUT)$/);
    await until(() => mount.errors().includes('can not be listed'), 'word of the source that is away');
    const again = await serve(rig, folder, server.port);
    // the same bytes have another server now: the open handle goes on
    await until(async () => DIGEST.test(await reader.ask(`read ${file} ${FAR} 1000`)), 'bytes of the new server');
    const compared = await rig.run('cmp', [file, same]);
    assert.equal(compared.code, 0, compared.errors + compared.text);
    again.child.kill('SIGKILL');
    assert.equal((await mount.end('SIGTERM')).code, 0);
  });

  // SEMANTICS 28
  test('SIGTERM ends a mount that is read, over a server that hangs', async () => {
    await using rig = new MountRig();
    const { folder } = lakeOf(rig);
    const server = await serve(rig, folder);
    const mount = await rig.mount(server.url, 'mount', ...SOON, '--stats', '--json');
    const [idle, waiting] = [rig.reader(), rig.reader()];
    const file = `${mount.folder}/same.bin`;
    for (const reader of [idle, waiting]) assert.equal(await reader.ask(`open ${file}`), 'ok');
    server.child.kill('SIGSTOP');
    const answer = waiting.ask(`read ${file} ${FAR} 1000`);
    await sleep(200);
    const { code, errors } = await mount.end('SIGTERM');
    server.child.kill('SIGKILL');
    assert.equal(code, 0, errors);
    assert.match(errors, /unmounted while files of it were open/);
    assert.match(await answer, /^(ENOTCONN|ECONNABORTED)$/);
    assert.match(await idle.ask(`read ${file} ${FAR} 1000`), /^(ENOTCONN|ECONNABORTED)$/);
    assert.equal((await rig.run('mountpoint', ['-q', mount.folder])).code, 32);
    const again = await rig.run('ls', [mount.folder]);
    assert.deepEqual([again.code, again.text], [0, '']);
  });

  // SEMANTICS 30
  test('what a killed process left is cleared away by the next mount, and by qanat unmount', async () => {
    await using rig = new MountRig();
    const { folder, same } = lakeOf(rig);
    const first = await rig.mount(folder, 'mount');
    const reader = rig.reader();
    const file = `${first.folder}/same.bin`;
    assert.equal(await reader.ask(`open ${file}`), 'ok');
    await first.end('SIGKILL');
    assert.match((await rig.run('ls', [first.folder])).errors, /not connected/);
    const second = await rig.mount(folder, 'mount');
    await until(() => /cleared away a dead mount/.test(second.errors()), 'word of the dead mount');
    const compared = await rig.run('cmp', [file, same]);
    assert.equal(compared.code, 0, compared.errors + compared.text);
    assert.match(await reader.ask(`read ${file} ${FAR} 1000`), /^(ENOTCONN|ECONNABORTED)$/);
    const other = rig.reader();
    assert.equal(await other.ask(`open ${file}`), 'ok');
    await second.end('SIGKILL');
    const unmounted = await rig.qanat(['unmount', second.folder]);
    assert.equal(unmounted.code, 0, unmounted.errors);
    assert.equal((await rig.run('mountpoint', ['-q', second.folder])).code, 32);
  });

  test('two signals end it at once, and leave no dead mount', async () => {
    await using rig = new MountRig();
    const { folder } = lakeOf(rig);
    const mount = await rig.mount(folder, 'mount', '--drain-timeout', '1m');
    const reader = rig.reader();
    assert.equal(await reader.ask(`open ${mount.folder}/same.bin`), 'ok');
    // one that comes right behind another may be the same
    await until(async () => {
      mount.child.kill('SIGTERM');
      return (await Promise.race([mount.ended(), sleep(500)])) !== undefined;
    }, 'the end');
    assert.equal((await mount.ended()).code, 143);
    assert.equal((await rig.run('mountpoint', ['-q', mount.folder])).code, 32);
  });

  test('a mount that is asked to end while it starts leaves nothing', async () => {
    await using rig = new MountRig();
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const target = rig.mountPoint('mount');
    const child = rig.spawn(process.execPath, [QANAT, 'mount', `rdma://127.0.0.1:${port}`, target]);
    const [socket] = (await within(once(silent, 'connection'), 'a client')) as [Socket];
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    assert.equal(await within(ended, 'the end'), 143);
    assert.equal((await rig.run('mountpoint', ['-q', target])).code, 32);
    socket.destroy();
    silent.close();
  });

  test('where there is no /dev/fuse it says what to do', { skip: whyNoNamespaces() }, async () => {
    await using rig = new MountRig();
    const { folder } = lakeOf(rig);
    const script = 'mount -t tmpfs none /dev && exec "$@"';
    const command = [process.execPath, QANAT, 'mount', folder, rig.mountPoint('mount')];
    const { code, errors } = await rig.run('unshare', ['-m', 'sh', '-c', script, 'sh', ...command]);
    assert.equal(code, 1);
    assert.match(errors, /^qanat mount: mount NO_DEVICE: \/dev\/fuse is not there [^\n]*modprobe fuse[^\n]*\n$/);
  });

  test('an ordinary user mounts through fusermount3', { skip: whyNoUsers() }, async (t) => {
    await using rig = new MountRig();
    const { folder } = lakeOf(rig);
    const server = await serve(rig, folder);
    const name = `qanat-test-${process.pid}`;
    const added = spawnSync('useradd', ['-M', '-r', name], { encoding: 'utf8' });
    assert.equal(added.status, 0, added.stderr);
    t.after(() => spawnSync('userdel', [name]));
    const id = (flag: string): string => spawnSync('id', [flag, name], { encoding: 'utf8' }).stdout.trim();
    const [uid, gid] = [id('-u'), id('-g')];
    chmodSync(rig.folder, 0o755);
    const target = rig.mountPoint('mount');
    spawnSync('chown', [uid, target]);
    mkdirSync(rig.path('dev'));
    // a namespace of mounts of their own, whose /dev/fuse everybody may open, as distributions have it
    const asUser = `mount -t tmpfs -o mode=755 none ${rig.path('dev')} && mknod -m 666 ${rig.path('dev/fuse')} c 10 229 &&
      mount --bind ${rig.path('dev/fuse')} /dev/fuse && exec setpriv --reuid=${uid} --regid=${gid} --clear-groups sh -c "$1"`;
    const quoted = (words: readonly string[]): string => words.map((word) => `'${word}'`).join(' ');
    const qanat = (...args: string[]): string => quoted([process.execPath, QANAT, ...args]);
    const steps = [
      `${qanat('mount', server.url, target, '--daemon')} && echo mounted`,
      `cmp ${target}/same.bin ${folder}/same.bin && echo equal`,
      `(exec 3<${target}/same.bin; ${qanat('unmount', target, '--drain-timeout', '100ms')}; echo busy $?)`,
      `${qanat('unmount', target)}; echo unmounted $?`,
      `P=$(${qanat('mount', server.url, target, '--daemon')} | sed 's/.*"pid"://; s/}//'); kill -9 $P; until ls ${target} 2>&1 | grep -q 'not connected'; do sleep 0.1; done; ls ${target}`,
      `${qanat('mount', server.url, target, '--daemon')} >/dev/null; echo again $?`,
      `${qanat('unmount', target)}; echo unmounted $?; ls ${target}; echo empty $?`,
    ];
    const { text, errors } = await rig.run('unshare', ['-m', 'sh', '-c', asUser, 'sh', steps.join('\n')]);
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('{'));
    assert.deepEqual(lines, ['mounted', 'equal', 'busy 1', 'unmounted 0', 'again 0', 'unmounted 0', 'empty 0'], errors);
    assert.match(errors, /mount BUSY: .* is in use by /);
    assert.match(errors, /not connected/);
  });
});

/** Why there can be no namespace of mounts; false when there can. */
function whyNoNamespaces(): string | false {
  const { status, error } = spawnSync('unshare', ['-m', 'true'], { stdio: 'ignore' });
  return error === undefined && status === 0 ? false : 'needs unshare, and permission for it';
}

function whyNoUsers(): string | false {
  if (whyNoNamespaces() !== false) return whyNoNamespaces();
  for (const program of ['fusermount3', 'useradd', 'userdel', 'setpriv', 'mknod']) {
    if (spawnSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' }).status !== 0) return `needs ${program}`;
  }
  // the user runs this checkout and this Node.js
  for (const path of [process.execPath, QANAT]) {
    for (let folder = dirname(path); folder !== '/'; folder = dirname(folder)) {
      if ((statSync(folder).mode & 0o005) !== 0o005) return `${folder} is closed to other users`;
    }
    accessSync(path, constants.R_OK);
  }
  return false;
}
