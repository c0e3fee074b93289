/** Which addresses other machines can reach: there is no authentication yet, so that one has to be asked for. */
import { isIP } from 'node:net';
import type { HostPort } from './argument.ts';

/** True unless only this machine can connect to the address. */
export function isExposed({ host }: HostPort): boolean {
  if (isIP(host) === 4) return !host.startsWith('127.');
  return host !== '::1' && host.toLowerCase() !== 'localhost';
}
