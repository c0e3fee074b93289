/**
 * How much memory this process may lock, which registering memory does. Asked before the library is, to say in words what
 * an ENOMEM would not.
 */
import { readFileSync } from 'node:fs';
import { VerbsError } from './errors.ts';

/** CAP_IPC_LOCK: memory may be locked beyond the limit. */
const CAP_IPC_LOCK = 14n;

/** What a text of /proc/self/limits and one of /proc/self/status say, bytes; infinite for who may lock what they like. */
export function parseLockLimit(limits: string, status: string): number {
  const capabilities = /^CapEff:\s*([0-9a-f]+)$/im.exec(status)?.[1];
  if (capabilities !== undefined && ((BigInt(`0x${capabilities}`) >> CAP_IPC_LOCK) & 1n) === 1n) {
    return Number.POSITIVE_INFINITY;
  }
  const soft = /^Max locked memory\s+(\S+)/m.exec(limits)?.[1];
  return soft === undefined || soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft);
}

/** Bytes that this process may lock altogether. */
export function lockLimit(): number {
  try {
    return parseLockLimit(readFileSync('/proc/self/limits', 'utf8'), readFileSync('/proc/self/status', 'utf8'));
  } catch {
    // No /proc: the library finds out.
    return Number.POSITIVE_INFINITY;
  }
}

/** Throws VerbsError MEMORY if `bytes` more than the `locked` ones would exceed the limit. */
export function checkLockable(bytes: number, locked: number, limit = lockLimit()): void {
  if (bytes + locked <= limit) return;
  throw new VerbsError(
    'MEMORY',
    `${inMiB(bytes)} of memory can't be locked: this process may lock ${inMiB(limit)} (RLIMIT_MEMLOCK). ` +
      'Raise it with `ulimit -l unlimited`, LimitMEMLOCK=infinity in a systemd unit, or memlock in /etc/security/limits.conf',
  );
}

function inMiB(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
