/** `qanat cp`: the exact bytes of one file, under its name complete or not at all. */
import { stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { VirtualFile } from '../../vfs/index.ts';
import { formatBytes } from '../argument.ts';
import { CommandError } from '../errors.ts';
import { type Output, withOutput } from '../output/output.ts';
import { canShowProgress, showProgress } from '../output/progress.ts';
import { type CommandContext, onlyFile, printJson, tellDone, withSource } from './command.ts';
import { COPY_READ_BYTES, COPY_READS_AHEAD } from './limits.ts';
import { refuseOwnSource } from './own-source.ts';

export async function cp(context: CommandContext): Promise<void> {
  const [url, to] = context.operands as [string, string];
  const { signal } = context.interruption;
  if (to === '-' && context.options.json) {
    throw new CommandError('USAGE', '--json and - both want standard output');
  }
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(to)) {
    throw new CommandError('USAGE', `${to}: a destination is a local file, written as a plain path`);
  }
  await withSource(url, context, async (source) => {
    const only = await onlyFile(source);
    const file = await source.open(only);
    const target = await targetOf(to, file.version.path);
    await refuseOwnSource(source, target);
    let copied = 0;
    const bytesTotal = file.version.length;
    const hide = showProgress('cp', canShowProgress(to === '-' && process.stdout.isTTY === true), () => ({
      bytes: copied,
      bytesTotal,
    }));
    try {
      await withOutput(target, signal, (output) => copy(file, output, signal, (bytes) => (copied += bytes)));
    } finally {
      hide();
    }
    if (context.options.json) await printJson({ file: only.path, output: target, bytes: bytesTotal, etag: only.etag });
    else if (target !== '-') tellDone(`${formatBytes(bytesTotal)} to ${target}`, context.options);
  });
}

async function targetOf(to: string, path: string): Promise<string> {
  if (to === '-') return to;
  const existing = await stat(to).catch(() => undefined);
  return existing?.isDirectory() || to.endsWith('/') ? join(to, basename(path)) : to;
}

/** Reads ahead of what is written, in order, with a few buffers that go round. */
async function copy(
  file: VirtualFile,
  output: Output,
  signal: AbortSignal,
  onCopied: (bytes: number) => void,
): Promise<void> {
  const { length } = file.version;
  const free = Array.from({ length: COPY_READS_AHEAD }, () => new Uint8Array(Math.min(COPY_READ_BYTES, length)));
  const reading: Promise<Uint8Array>[] = [];
  let start = 0;
  const readOn = (): void => {
    while (start < length && free.length > 0) {
      const end = Math.min(start + COPY_READ_BYTES, length);
      const into = free.pop()!.subarray(0, end - start);
      const read = file.read({ start, end }, into, { signal });
      read.catch(() => {}); // told when its turn comes
      reading.push(read);
      start = end;
    }
  };
  readOn();
  for (let next = reading.shift(); next !== undefined; next = reading.shift()) {
    const bytes = await next;
    await output.write(bytes);
    onCopied(bytes.byteLength);
    free.push(new Uint8Array(bytes.buffer as ArrayBuffer));
    readOn();
  }
}
