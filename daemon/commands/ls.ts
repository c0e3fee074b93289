/** `qanat ls`: the files of a location, each as it can be given to the other commands. */
import { formatBytes, formatCounted } from '../argument.ts';
import { writeStdout } from '../output/output.ts';
import { alignRows, printable } from '../output/printable.ts';
import { type CommandContext, printJson, withSource } from './command.ts';

export async function ls(context: CommandContext): Promise<void> {
  const { operands, options } = context;
  await withSource(operands[0]!, context, async (source) => {
    const { files, leftOut } = await source.listing();
    if (options.json) {
      await printJson(
        files.map(({ path, length, etag, modifiedMs }) => ({
          location: source.locationOf(path),
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
      printable(source.shown(path)),
    ]);
    await writeStdout(alignRows(rows, new Set([0])));
    if (leftOut > 0) tellLeftOut(leftOut, operands[0]!, source.location.pack !== undefined);
  });
}

function tellLeftOut(count: number, url: string, packed: boolean): void {
  const inside = packed && !url.includes('!') ? '!/**' : '/**';
  const all = printable(`${url.replace(/\/+$/, '')}${inside}`);
  process.stderr.write(`${formatCounted(count, 'file')} more, not named as Parquet: qanat ls '${all}' lists all\n`);
}
