/** Where benchmarks keep the tables that they make: a folder of this user's in the system's temporary folder. */
import { mkdirSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export function tableFolder(): string {
  const folder = join(tmpdir(), `qanat-bench-${process.getuid?.() ?? 0}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const owner = statSync(folder).uid;
  if (process.getuid !== undefined && owner !== process.getuid()) throw new Error(`${folder} belongs to user ${owner}`);
  return folder;
}
