/** `qanat completion`: a script that lets a shell complete what one types. */
import { bashCompletion } from '../completion/bash.ts';
import { fishCompletion } from '../completion/fish.ts';
import { zshCompletion } from '../completion/zsh.ts';
import { CommandError } from '../errors.ts';
import { SHELLS, type Shell } from '../help/manual.ts';
import { writeStdout } from '../output/output.ts';
import type { CommandContext } from './command.ts';

const SCRIPTS: Readonly<Record<Shell, () => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
};

export async function completion({ operands }: CommandContext): Promise<void> {
  const shell = SHELLS.find((one) => one === operands[0]);
  if (shell === undefined) {
    throw new CommandError('USAGE', `no completion for ${operands[0]}: expected one of ${SHELLS.join(', ')}`);
  }
  await writeStdout(SCRIPTS[shell]());
}
