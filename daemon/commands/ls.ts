/** `qanat ls`: the files of a location. */
import { formatBytes } from '../argument.ts';
import { writeStdout } from '../output/output.ts';
import { alignRows, printable } from '../output/printable.ts';
import { type CommandContext, printJson, withSource } from './command.ts';

export async function ls(context: CommandContext): Promise<void> {
  const files = await withSource(context.operands[0]!, context, (source) => source.list());
  if (context.options.json) {
    await printJson(
      files.map(({ path, length, etag, modifiedMs }) => ({
        path,
        bytes: length,
        modified: new Date(modifiedMs).toISOString(),
        etag,
      })),
    );
    return;
  }
  const rows = files.map(({ path, length, modifiedMs }) => [
    formatBytes(length),
    new Date(modifiedMs).toISOString().slice(0, 16).replace('T', ' '),
    printable(path),
  ]);
  await writeStdout(alignRows(rows, new Set([0])));
}
