/** `qanat pack`: the region that `qanat serve` would serve, as one file, under its name complete or not at all. */
import { type PackedRegion, packRegion } from '../../storage-server/index.ts';
import { isPackedPath } from '../../storage-server/protocol/index.ts';
import { formatBytes, formatCounted } from '../argument.ts';
import { CommandError } from '../errors.ts';
import { printable } from '../output/printable.ts';
import { canShowProgress, showProgress } from '../output/progress.ts';
import { type CommandContext, checkedAlign, printJson, tellDone } from './command.ts';
import { SKIPPED_SHOWN_MAX } from './limits.ts';

export async function pack({ operands, options, interruption }: CommandContext): Promise<void> {
  const { output, all = false } = options;
  if (output === undefined) throw new CommandError('USAGE', 'where to? Name the packed file with -o lake.qanat');
  if (output !== '-' && !isPackedPath(output)) {
    throw new CommandError('USAGE', `-o ${output}: the name of a packed file ends in .qanat, by which it is known`);
  }
  if (output === '-') throw new CommandError('USAGE', '-o -: a packed file has to be a file');
  const alignBytes = checkedAlign(options);
  const began = performance.now();
  let bytes = 0;
  let bytesTotal = 0;
  const hide = showProgress('pack', canShowProgress(false), () => ({ bytes, bytesTotal }));
  let packed: PackedRegion;
  try {
    packed = await packRegion({
      roots: operands,
      output,
      all,
      ...(alignBytes === undefined ? {} : { alignBytes }),
      signal: interruption.signal,
      onProgress: (done, total) => {
        bytes = done;
        bytesTotal = total;
      },
      onLeftover: (name) =>
        process.stderr.write(`qanat pack: removed ${printable(name)}, left by a run that crashed\n`),
    });
  } finally {
    hide();
  }
  tellSkipped(packed);
  if (packed.files === 0) {
    process.stderr.write(`qanat pack: warning: no file was packed${all ? '' : ' (--all packs files of any name)'}\n`);
  }
  if (options.json) {
    const { files, fileBytes, regionBytes, generation, skipped } = packed;
    await printJson({ file: output, bytes: regionBytes, files, fileBytes, generation, skipped });
    return;
  }
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  tellDone(
    `${formatCounted(packed.files, 'file')}, ${formatBytes(packed.regionBytes)} to ${output} in ${seconds} s`,
    options,
  );
}

function tellSkipped({ skipped }: PackedRegion): void {
  for (const { path, reason } of skipped.slice(0, SKIPPED_SHOWN_MAX)) {
    process.stderr.write(`qanat pack: skipped: ${printable(path)}: ${printable(reason)}\n`);
  }
  const more = skipped.length - SKIPPED_SHOWN_MAX;
  if (more > 0) process.stderr.write(`qanat pack: skipped: ${more} more\n`);
}
