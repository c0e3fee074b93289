/** `qanat help`: the manual of a command or of the whole, as text or as a page for man. */
import packageJson from '../../package.json' with { type: 'json' };
import { COMMANDS, type CommandName } from '../command-table.ts';
import { CommandError } from '../errors.ts';
import { commandPage, programPage } from '../help/page.ts';
import { pageRoff } from '../help/roff.ts';
import { pageText } from '../help/text.ts';
import { HELP_COLUMNS_DEFAULT } from '../limits.ts';
import { writeStdout } from '../output/output.ts';
import type { CommandContext } from './command.ts';

export async function help({ operands, options }: CommandContext): Promise<void> {
  const [name] = operands;
  if (name !== undefined && !Object.hasOwn(COMMANDS, name)) {
    throw new CommandError('USAGE', `no command ${name}: expected one of ${Object.keys(COMMANDS).join(', ')}`);
  }
  const page = name === undefined ? programPage() : commandPage(name as CommandName);
  const columns = process.stdout.columns ?? HELP_COLUMNS_DEFAULT;
  await writeStdout(options.man ? pageRoff(page, packageJson.version) : pageText(page, columns));
}
