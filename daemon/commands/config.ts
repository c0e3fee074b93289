/**
 * `qanat config check`: what a daemon would run with, each value with where it comes from, or all that is wrong. Ends
 * with 0 when it is valid, 2 when it is not, 1 when the file can't be read. Connects to nothing.
 */
import { configError, resolveConfig } from '../config/config.ts';
import type { Problem } from '../config/file.ts';
import { configJson, configText } from '../config/shown.ts';
import { CommandError } from '../errors.ts';
import { writeStdout } from '../output/output.ts';
import { type CommandContext, printJson } from './command.ts';

export async function config({ operands, options, origins }: CommandContext): Promise<void> {
  const [action, path = options.config] = operands;
  if (action !== 'check') {
    throw new CommandError('USAGE', `qanat config ${action}: there is qanat config check [file]`);
  }
  const resolved = await resolveConfig({ options, origins }, path);
  if (Array.isArray(resolved)) {
    if (options.json) await printJson({ valid: false, file: path ?? null, problems: resolved });
    throw configError(resolved, path ?? 'the configuration');
  }
  const valid = resolved as Exclude<typeof resolved, Problem[]>;
  if (options.json) await printJson(configJson(valid));
  else await writeStdout(configText(valid));
}
