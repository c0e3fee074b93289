/** A file with the number of this process, there while it runs. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { CommandError } from '../errors.ts';

/** Writes the file; what is returned removes it, if it is still ours. Throws CommandError OUTPUT. */
export function writePidFile(path: string): () => void {
  const whole = resolve(path);
  const text = `${process.pid}\n`;
  try {
    writeFileSync(whole, text, { mode: 0o644 });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new CommandError('OUTPUT', `the pid file can not be written: ${reason}`, { cause });
  }
  return () => {
    try {
      if (readFileSync(whole, 'utf8') === text) rmSync(whole);
    } catch {
      // somebody has removed it
    }
  };
}
