/** Errors on their way between threads and processes, which keep no classes: their parts, and the error made anew. */
import { DecodeError, type DecodeErrorCode } from '../../decode/index.ts';
import { FetchError, type FetchErrorCode } from '../../fetcher/index.ts';
import { MountError, type MountErrorCode } from '../../vfs/index.ts';
import { CommandError, type CommandErrorCode } from '../errors.ts';

/** Plain data. */
export interface PostedError {
  readonly name: string;
  readonly code: string;
  readonly reason: string;
  readonly details: readonly string[];
  readonly stack: string | undefined;
}

export function postError(error: unknown): PostedError {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  const { code, reason, details } = (error ?? {}) as { code?: unknown; reason?: unknown; details?: readonly string[] };
  return {
    name,
    code: typeof code === 'string' ? code : '',
    reason: typeof reason === 'string' ? reason : message,
    details: Array.isArray(details) ? details.map(String) : [],
    stack,
  };
}

/** The error again, of its class where that is one of ours; codes are not checked, both ends are of one version. */
export function revivedError({ name, code, reason, details, stack }: PostedError): Error {
  const error = makeError(name, code, reason, details);
  if (stack !== undefined) error.stack = stack;
  return error;
}

function makeError(name: string, code: string, reason: string, details: readonly string[]): Error {
  switch (name) {
    case 'MountError':
      return new MountError(code as MountErrorCode, reason);
    case 'FetchError':
      return new FetchError(code as FetchErrorCode, reason);
    case 'CommandError':
      return new CommandError(code as CommandErrorCode, reason, { details });
    case 'DecodeError':
      return new DecodeError(code as DecodeErrorCode, reason);
    default:
      return new Error(reason);
  }
}
