/**
 * Texts without what lets somebody in: user names and passwords in URLs, their query strings (signed URLs carry their
 * signature there), and values of what is called a token, password, key or signature. For everything that is logged or
 * shown; data is not touched. `rdma://` and `file://` have no queries: a question mark in them is a wildcard.
 */

const MASK = '***';

/** scheme://…, up to what can't be part of a URL. Bounded, as all of these: time grows with the length of a text only. */
const URLS = /([a-z0-9+.-]{0,30}):\/\/([^\s"'<>`|\\^]*)/gi;

/** user:password@host where somebody forgot the scheme. */
const LOGINS = /(^|[\s"'(=,])[\w.+-]{1,64}:[^\s"'@/:]{1,128}@(?=[\w[])/g;

/** `Bearer …`, `Basic …`: the credentials of an Authorization header. */
const SCHEMES = /\b(bearer|basic|negotiate)\s+[\w~+/=.-]{6,}/gi;

const SECRET_WORD =
  '(?:password|passwd|passphrase|secret|token|credentials?|authorization|cookie|api[-_]?key|access[-_]?key|private[-_]?key|signature)';

/** name=value and "name": "value", where the name ends in such a word. */
const PAIRS = new RegExp(`(${SECRET_WORD})(["']?\\s{0,9}[=:]\\s{0,9})("[^"]*"|'[^']*'|[^\\s,;&"']+)`, 'gi');

const SECRET_NAME = new RegExp(`^(?:.*[-_.a-z])?${SECRET_WORD}$`, 'i');

/** The text with every secret in it replaced by `***`. */
export function redact(text: string): string {
  return text
    .replace(URLS, (_, scheme: string, rest: string) => `${scheme}://${redactUrl(scheme.toLowerCase(), rest)}`)
    .replace(LOGINS, `$1${MASK}@`)
    .replace(SCHEMES, (_, scheme: string) => `${scheme} ${MASK}`)
    .replace(PAIRS, (_, name: string, between: string, value: string) => {
      const quote = value.startsWith('"') || value.startsWith("'") ? value[0]! : '';
      return `${name}${between}${quote}${MASK}${quote}`;
    });
}

function redactUrl(scheme: string, rest: string): string {
  const [authority = ''] = rest.split('/');
  // a password may hold characters that it should not: the last @ before the path counts
  const at = authority.lastIndexOf('@');
  const user = at < 0 ? '' : `${MASK}@`;
  const bare = rest.slice(at + 1);
  const query = /^(rdmas?|file)$/.test(scheme) ? -1 : bare.search(/[?#]/);
  return user + (query < 0 ? bare : `${bare.slice(0, query + 1)}${MASK}`);
}

/** A value of any shape without secrets: in its texts, and under names that say that they are one. */
export function redactValue(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redact(value);
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null) return value;
  if (depth > 8) return '…';
  if (value instanceof Error) return redactError(value, depth);
  if (value instanceof Date) return value;
  if (Array.isArray(value)) return value.map((one) => redactValue(one, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name,
      SECRET_NAME.test(name) && one !== undefined && one !== null ? MASK : redactValue(one, depth + 1),
    ]),
  );
}

function redactError(error: Error, depth: number): unknown {
  const { code } = error as { code?: unknown };
  return {
    type: error.name,
    ...(typeof code === 'string' ? { code } : {}),
    message: redact(error.message),
    ...(error.stack === undefined ? {} : { stack: redact(error.stack) }),
    ...(error.cause === undefined ? {} : { cause: redactValue(error.cause, depth + 1) }),
  };
}
