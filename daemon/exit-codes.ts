/** What the process tells its parent: the one place where errors become exit codes. */
import { DecodeError } from '../decode/index.ts';
import { FetchError } from '../fetcher/index.ts';
import { MetricsError } from '../metrics/index.ts';
import { ServeError } from '../storage-server/index.ts';
import { MountError } from '../vfs/index.ts';
import { CommandError } from './errors.ts';

export const EXIT = { OK: 0, FAILED: 1, USAGE: 2, INTERRUPTED: 130, TERMINATED: 143 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** For the README's table. */
export const EXIT_CODE_MEANINGS: ReadonlyArray<readonly [code: ExitCode, meaning: string]> = [
  [
    EXIT.OK,
    'Done; also when the reader of the output closed it (`qanat scan … \\| head`), and a server that was stopped',
  ],
  [EXIT.FAILED, 'It could not be done: one line on standard error says why'],
  [EXIT.USAGE, 'The command line, or a configuration, makes no sense'],
  [EXIT.INTERRUPTED, 'Ended by Ctrl-C (SIGINT); no half-written file is left'],
  [EXIT.TERMINATED, 'Ended by SIGTERM; no half-written file is left'],
];

/** The exit code for an error that ended a command. */
export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof CommandError) {
    if (error.code === 'OUTPUT_CLOSED') return EXIT.OK;
    return error.code === 'USAGE' || error.code === 'CONFIG' ? EXIT.USAGE : EXIT.FAILED;
  }
  const usage = error instanceof FetchError && (error.code === 'BAD_URL' || error.code === 'OPTION');
  return usage ? EXIT.USAGE : EXIT.FAILED;
}

/** True for errors that a user's input or the world brings about; anything else is a bug of ours. */
export function isExpected(error: unknown): error is Error {
  return (
    error instanceof CommandError ||
    error instanceof FetchError ||
    error instanceof DecodeError ||
    error instanceof ServeError ||
    error instanceof MountError ||
    error instanceof MetricsError ||
    (error instanceof Error && 'syscall' in error)
  );
}
