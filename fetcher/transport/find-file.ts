/** The current version of one file by its path: where a transport can, without a listing. */
import type { FileVersion, FindOptions, Transport } from './transport.ts';

export async function findFile(transport: Transport, path: string): Promise<FileVersion | undefined> {
  if (transport.find !== undefined) return transport.find(path);
  return (await transport.list(path)).find((one) => one.path === path);
}

/** What a wrapper has for `find`: the one of what it wraps, if that has one. */
export function passFind(inner: Transport): Pick<Transport, 'find'> {
  return inner.find === undefined ? {} : { find: (path, options?: FindOptions) => inner.find!(path, options) };
}
