/**
 * Whether a process (or thread) is about to end: a signal is pending that it neither handles nor ignores. Read from
 * /proc, which never asks a mount. What can't be known (another pid namespace, no /proc) counts as dying: an answer
 * that comes early is better than one that keeps a killed process.
 */
import { readFileSync } from 'node:fs';

/** SIGKILL and SIGSTOP can't be handled; of the two only the former ends. Bit n - 1 stands for signal n. */
const SIGKILL_BIT = 1n << 8n;
/** Signals whose default is not to end the process: CHLD, CONT, STOP, TSTP, TTIN, TTOU, URG, WINCH. */
const HARMLESS_BITS = [17, 18, 19, 20, 21, 22, 23, 28].reduce((bits, signal) => bits | (1n << BigInt(signal - 1)), 0n);

export function isDying(pid: number): boolean {
  if (pid === 0) return true;
  try {
    return statusTells(readFileSync(`/proc/${pid}/status`, 'latin1'));
  } catch {
    return true;
  }
}

/** The same from the text of /proc/PID/status. */
export function statusTells(status: string): boolean {
  const mask = (field: string): bigint => {
    const [, hex] = new RegExp(`^${field}:\\s*([0-9a-f]{1,16})$`, 'm').exec(status) ?? [];
    return hex === undefined ? 0n : BigInt(`0x${hex}`);
  };
  const pending = mask('SigPnd') | mask('ShdPnd');
  if (pending & SIGKILL_BIT) return true;
  return (pending & ~mask('SigBlk') & ~mask('SigCgt') & ~mask('SigIgn') & ~HARMLESS_BITS) !== 0n;
}
