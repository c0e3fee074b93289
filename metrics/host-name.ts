/**
 * Which names a listener that only this machine can reach is asked for by. A page in a browser can make a name of its own
 * mean this machine, and is then served as if it was somebody here (DNS rebinding); but it is still called by that name.
 */
import { isIP } from 'node:net';

/** Whether an address is one that only this machine can connect to. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^::ffff:(?=\d)/i, '');
  if (isIP(bare) === 4) return bare.startsWith('127.');
  return bare === '::1' || bare.toLowerCase() === 'localhost';
}

/**
 * Whether a Host header says an address, `localhost` or below it, or one of `names` (small letters) or below it. One that
 * is not there is no browser's.
 */
export function isOwnName(header: string | undefined, names: readonly string[] = []): boolean {
  if (header === undefined || header === '') return true;
  const [, bracketed, plain = ''] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d{1,5})?$/.exec(header) ?? [];
  const host = (bracketed ?? plain).toLowerCase().replace(/\.$/, '');
  return isIP(host) !== 0 || ['localhost', ...names].some((name) => host === name || host.endsWith(`.${name}`));
}
