/** Why benchmarks of the mount can't run here. */
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';

export function whyNoMount(): string | undefined {
  if (process.platform !== 'linux' || !existsSync('/dev/fuse')) return 'there is no /dev/fuse';
  if (availableParallelism() < 2) return 'engine and daemon need a core each';
  return undefined;
}
