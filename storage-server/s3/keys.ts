/**
 * Keys that clients sign with: a file with one pair a line, `id secret` or `id:secret`, empty lines and lines that begin
 * with `#` aside. Secrets are in no error and no log.
 */
import { readSecretFile } from '../access/secret-file.ts';
import { ServeError } from '../errors.ts';

/** Secrets by the ids of their keys. */
export type SigningKeys = ReadonlyMap<string, string>;

/** Reads a file of keys. Throws ServeError KEYS. */
export async function readKeysFile(path: string, warn: (text: string) => void): Promise<SigningKeys> {
  const { text, exposure } = await readSecretFile(path).catch((cause: Error) => {
    throw new ServeError('KEYS', `the keys in ${path} can't be read: ${cause.message}`, { cause });
  });
  const keys = parseKeys(text, path);
  if (exposure !== undefined) warn(exposure);
  return keys;
}

/** The keys of a text. Throws ServeError KEYS, which names the line. */
export function parseKeys(text: string, path: string): SigningKeys {
  const keys = new Map<string, string>();
  for (const [k, line] of text.split(/\r?\n/).entries()) {
    if (/^\s*(#|$)/.test(line)) continue;
    const [, id, secret] = /^\s*([^\s:/,=]{1,128})(?:\s*:\s*|\s+)(\S{1,256})\s*$/.exec(line) ?? [];
    if (id === undefined || secret === undefined) {
      throw new ServeError('KEYS', `${path}:${k + 1}: expected the id of a key and its secret, with a space between`);
    }
    if (keys.has(id)) throw new ServeError('KEYS', `${path}:${k + 1}: ${id} is there twice`);
    keys.set(id, secret);
  }
  if (keys.size === 0) throw new ServeError('KEYS', `${path} holds no key`);
  return keys;
}
