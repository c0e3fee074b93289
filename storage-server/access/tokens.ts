/**
 * Tokens that let somebody in: a file with one a line, `name token prefix...`, empty lines and lines that begin with `#`
 * aside. Instead of a token there may be its hash (`sha256:` and 64 hexadecimal digits), so that the file gives nobody
 * access. A prefix is a path of the directory, `/` everything; `@metrics` lets the token read metrics, as `/` does.
 *
 * Only hashes are kept. What is presented is hashed and compared with all of them, in time that depends neither on which
 * one it is nor on whether there is any. Tokens are in no error and no log.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { ServeError } from '../errors.ts';
import { TOKEN_CHARACTERS_MAX, TOKEN_CHARACTERS_MIN, TOKENS_MAX } from './limits.ts';
import { isTooMany, parsePrefix, Scope } from './scope.ts';
import { readSecretFile } from './secret-file.ts';

/** Who a token stands for. */
export interface TokenGrant {
  /** Equal in another file if the same token sees the same there. As secret as the token's hash. */
  readonly id: string;
  /** For logs; not a secret. */
  readonly name: string;
  readonly scope: Scope;
  readonly seesMetrics: boolean;
}

interface Entry extends TokenGrant {
  readonly hash: Buffer;
}

const METRICS = '@metrics';
const FORM = 'expected a name, a token and the paths that it may read (/ is everything)';

export class Tokens {
  readonly #entries: readonly Entry[];

  private constructor(entries: readonly Entry[]) {
    this.#entries = entries;
  }

  /** The tokens of a text. Throws ServeError TOKENS, which names the line. */
  static parse(text: string, path: string): Tokens {
    const entries: Entry[] = [];
    const names = new Set<string>();
    const hashes = new Set<string>();
    for (const [k, line] of text.split(/\r?\n/).entries()) {
      if (/^\s*(#|$)/.test(line)) continue;
      const fail = (what: string): never => {
        throw new ServeError('TOKENS', `${path}:${k + 1}: ${what}`);
      };
      const [name = '', secret = '', ...grants] = line.trim().split(/\s+/);
      if (!/^[\w.@-]{1,64}$/.test(name)) fail('a name has letters, digits, ".", "_", "@" and "-", 64 at most');
      if (grants.length === 0) fail(FORM);
      const hash = hashOf(secret);
      if (hash === undefined) {
        const sizes = `${TOKEN_CHARACTERS_MIN} to ${TOKEN_CHARACTERS_MAX}`;
        return fail(`a token has ${sizes} visible characters, or is given as sha256: and 64 hexadecimal digits`);
      }
      if (names.has(name)) fail(`${name} is there twice`);
      if (hashes.has(hash.toString('hex'))) fail('another name has the same token');
      names.add(name);
      hashes.add(hash.toString('hex'));
      const given = grantsOf(grants, fail);
      const id = [name, hash.toString('hex'), given.scope.key, given.seesMetrics].join(' ');
      entries.push({ id, name, hash, ...given });
    }
    if (entries.length === 0) throw new ServeError('TOKENS', `${path} holds no token: ${FORM}`);
    if (entries.length > TOKENS_MAX) throw new ServeError('TOKENS', `${path} holds more than ${TOKENS_MAX} tokens`);
    return new Tokens(entries);
  }

  /** Reads a file of tokens. Throws ServeError TOKENS. */
  static async read(path: string, warn: (text: string) => void): Promise<Tokens> {
    const file = await readSecretFile(path).catch((cause: Error) => {
      throw new ServeError('TOKENS', `the tokens in ${path} can't be read: ${cause.message}`, { cause });
    });
    const tokens = Tokens.parse(file.text, path);
    if (file.exposure !== undefined) warn(file.exposure);
    return tokens;
  }

  /** Who has shown this token; undefined for a wrong one and for none, in the same time. */
  holderOf(presented: string | undefined): TokenGrant | undefined {
    const hash = createHash('sha256')
      .update(presented ?? '')
      .digest();
    let found: Entry | undefined;
    for (const entry of this.#entries) if (timingSafeEqual(entry.hash, hash)) found = entry;
    return presented === undefined ? undefined : found;
  }

  /** Whether a grant of an earlier file still holds: the same token sees the same. */
  keeps({ id }: TokenGrant): boolean {
    return this.#entries.some((entry) => entry.id === id);
  }
}

function hashOf(secret: string): Buffer | undefined {
  const [, digits] = /^sha256:([0-9a-f]{64})$/i.exec(secret) ?? [];
  if (digits !== undefined) return Buffer.from(digits, 'hex');
  const isToken = /^[\x21-\x7e]+$/.test(secret) && !secret.startsWith('sha256:');
  if (!isToken || secret.length < TOKEN_CHARACTERS_MIN || secret.length > TOKEN_CHARACTERS_MAX) return undefined;
  return createHash('sha256').update(secret).digest();
}

function grantsOf(words: readonly string[], fail: (what: string) => never): Pick<Entry, 'scope' | 'seesMetrics'> {
  const prefixes: string[] = [];
  for (const word of words) {
    if (word === METRICS) continue;
    prefixes.push(parsePrefix(word) ?? fail(`${JSON.stringify(word)} is no path of a directory`));
  }
  if (isTooMany(prefixes.length)) fail(`${prefixes.length} paths are too many for one token`);
  const scope = new Scope(prefixes);
  return { scope, seesMetrics: scope.isEverything || words.includes(METRICS) };
}

/** The token of an Authorization header, or of a hello, which says the same; undefined for none. */
export function bearerToken(text: string | undefined): string | undefined {
  return /^bearer +([\x21-\x7e]+) *$/i.exec(text ?? '')?.[1];
}

/** The same of the bytes of a hello. */
export function tokenOf(authentication: Uint8Array): string | undefined {
  return bearerToken(Buffer.from(authentication).toString('latin1'));
}
