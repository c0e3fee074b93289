/** Queries and percent-encoding as S3 has them. Pure. */
import { S3Error } from './errors.ts';
import { PARAMETERS_MAX } from './limits.ts';

/** Names and values of a query, decoded, in the order they came. Throws S3Error InvalidURI. */
export function parseQuery(query: string): [name: string, value: string][] {
  if (query === '') return [];
  const parts = query.split('&').filter((part) => part !== '');
  if (parts.length > PARAMETERS_MAX) throw new S3Error('InvalidURI', `more than ${PARAMETERS_MAX} parameters`);
  return parts.map((part) => {
    const at = part.indexOf('=');
    const [name, value] = at < 0 ? [part, ''] : [part.slice(0, at), part.slice(at + 1)];
    return [decodePercent(name.replaceAll('+', ' ')), decodePercent(value.replaceAll('+', ' '))];
  });
}

/** Throws S3Error InvalidURI for what is not percent-encoded UTF-8. */
export function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new S3Error('InvalidURI', 'the address is not percent-encoded UTF-8');
  }
}

/** Everything but letters, digits and `-._~` as the bytes of its UTF-8, in capitals, as signatures want it. */
export function encodePercent(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** The same of a path or a key, whose slashes stay. */
export function encodePath(path: string): string {
  return encodePercent(path).replaceAll('%2F', '/');
}
