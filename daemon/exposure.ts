/** Which addresses other machines can reach: those take authentication, or to be asked for. */
import { isLoopback } from '../metrics/index.ts';
import type { HostPort } from './argument.ts';

/** True unless only this machine can connect to the address. */
export function isExposed({ host }: HostPort): boolean {
  return !isLoopback(host);
}
