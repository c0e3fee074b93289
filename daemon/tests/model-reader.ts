/**
 * A process that uses a mount as it is told over IPC, several things at a time, each in a thread of libuv's. It answers
 * with what the system gave it: bytes, names, or the name of an error.
 */
import type { FileHandle } from 'node:fs/promises';
import { open, readdir, stat } from 'node:fs/promises';
import { constants } from 'node:os';
import { pathToFileURL } from 'node:url';

export type ReaderCommand =
  | { readonly op: 'open'; readonly path: string; readonly handle: number }
  | { readonly op: 'read'; readonly handle: number; readonly offset: number; readonly length: number }
  | { readonly op: 'close'; readonly handle: number }
  | { readonly op: 'list'; readonly path: string }
  | { readonly op: 'stat'; readonly path: string };

/** Bytes of a read, the length of an opened file or one that was looked at, names of a folder. */
export type ReaderAnswer =
  | { readonly bytes: Uint8Array }
  | { readonly length: number }
  | { readonly names: string[] }
  | { readonly error: string };

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const handles = new Map<number, FileHandle>();
  process.on('disconnect', () => process.exit());
  process.on('message', ({ id, command }: { id: number; command: ReaderCommand }) => {
    run(handles, command).then(
      (answer) => process.send!({ id, answer }),
      (error: unknown) => process.send!({ id, answer: { error: nameOf(error) } }),
    );
  });
}

async function run(handles: Map<number, FileHandle>, command: ReaderCommand): Promise<ReaderAnswer> {
  switch (command.op) {
    case 'open': {
      const handle = await open(command.path);
      try {
        const { size } = await handle.stat();
        handles.set(command.handle, handle);
        return { length: size };
      } catch (error) {
        await handle.close();
        throw error;
      }
    }
    case 'read': {
      const into = Buffer.alloc(command.length);
      const { bytesRead } = await handles.get(command.handle)!.read(into, 0, into.length, command.offset);
      return { bytes: into.subarray(0, bytesRead) };
    }
    case 'close':
      await handles.get(command.handle)?.close();
      handles.delete(command.handle);
      return { length: 0 };
    case 'list':
      return { names: await readdir(command.path) };
    case 'stat':
      return { length: (await stat(command.path)).size };
  }
}

/** libuv has no name for ESTALE. */
function nameOf(error: unknown): string {
  const { errno, code } = error as NodeJS.ErrnoException;
  return Object.entries(constants.errno).find(([, value]) => value === -(errno ?? 0))?.[0] ?? String(code ?? error);
}
