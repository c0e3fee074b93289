/** A kernel's negative code as the typed error that it means in its context. */
import { DecodeError, type DecodeErrorCode } from '../errors.ts';
import {
  E_HEADER,
  E_INDEX,
  E_LENGTH,
  E_OFFSET,
  E_TRUNC,
  E_UTF8,
  E_VALUE,
  E_VARINT,
  E_WIDTH,
} from '../kernels/kernels.ts';

const MEANING: Record<number, string> = {
  [E_TRUNC]: 'ends inside a value',
  [E_LENGTH]: 'has a length that disagrees with its page',
  [E_OFFSET]: 'copies from before its start',
  [E_WIDTH]: 'has a bit width that its type does not allow',
  [E_INDEX]: 'has an index outside its dictionary',
  [E_VARINT]: 'has an over-long variable-length integer',
  [E_HEADER]: 'has a delta header that is not allowed',
  [E_UTF8]: 'has a value that is not UTF-8',
  [E_VALUE]: 'has a level or boolean over its maximum',
};

/** `what` names the thing that the kernel was reading. */
export function kernelError(code: DecodeErrorCode, kernelCode: number, what: string): DecodeError {
  return new DecodeError(code, `${what} ${MEANING[kernelCode] ?? `failed with code ${kernelCode}`}`);
}
