/** Runs the checkers that other projects made. One that is not installed is a reason to skip, never to pass. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

export const DEPLOY = join(import.meta.dirname, '..');
export const ROOT = join(DEPLOY, '..');
const CHECK_MS = 60_000;

export interface Checked {
  readonly code: number | null;
  /** Both outputs. */
  readonly text: string;
}

/** Why a test that needs `command` is skipped; false when it is there. */
export function missing(command: string, ...version: string[]): string | false {
  const { error } = spawnSync(command, version.length === 0 ? ['--version'] : version, { timeout: CHECK_MS });
  return error === undefined ? false : `no ${command} here`;
}

export function check(command: string, args: readonly string[], cwd = DEPLOY): Checked {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8', timeout: CHECK_MS });
  if (error !== undefined) throw error;
  return { code: status, text: `${stdout}${stderr}` };
}
