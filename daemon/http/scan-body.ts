/** The body of POST /v1/scan: what a client may ask for, by the names that the library's `scan` has. */
import { z } from 'zod';
import { PREFETCH_DEPTH_MAX, REQUEST_BYTES_MAX } from '../../fetcher/index.ts';
import { PROBLEMS_MAX } from '../config/limits.ts';
import { nearest } from '../config/nearest.ts';
import { mismatch } from '../config/setting.ts';
import { redact } from '../secrets.ts';
import { HttpError, type RequestProblem } from './http-error.ts';
import { BATCH_ROWS_MAX, COLUMNS_MAX, TEXT_CHARACTERS_MAX } from './limits.ts';

const text = (what: string) =>
  z
    .string({ error: ({ input }) => mismatch(what, input) })
    .min(1, { error: `expected ${what}, found an empty text` })
    .max(TEXT_CHARACTERS_MAX, { error: `expected ${what}, found more than ${TEXT_CHARACTERS_MAX} characters` });

const whole = (least: number, most: number) => {
  const what = `a whole number from ${least} to ${most}`;
  const error = ({ input }: { input?: unknown }): string => mismatch(what, input);
  return z.number({ error }).int({ error }).min(least, { error }).max(most, { error });
};

const orAuto = (least: number, most: number) => {
  const what = `a whole number from ${least} to ${most}, or "auto"`;
  return z.union([whole(least, most), z.literal('auto')], { error: ({ input }) => mismatch(what, input) });
};

const yesOrNo = z.boolean({ error: ({ input }) => mismatch('true or false', input) });

const shape = {
  source: text('the name of a source').optional(),
  location: text('a location').optional(),
  path: text('the path of a file or folder of the source, or a glob').optional(),
  columns: z
    .array(text('the name of a column'), { error: ({ input }) => mismatch('a list of names of columns', input) })
    .min(1, { error: 'expected at least one name; without "columns" all of them come' })
    .max(COLUMNS_MAX, { error: `expected at most ${COLUMNS_MAX} names` })
    .optional(),
  limit: whole(0, Number.MAX_SAFE_INTEGER).optional(),
  batchRows: whole(1, BATCH_ROWS_MAX).optional(),
  prefetchDepth: orAuto(1, PREFETCH_DEPTH_MAX).optional(),
  maxGap: orAuto(0, REQUEST_BYTES_MAX).optional(),
  preserveOrder: yesOrNo.optional(),
  dictionary: yesOrNo.optional(),
};

const schema = z
  .strictObject(shape, { error: ({ input }) => mismatch('a JSON object', input) })
  .refine(({ source, location }) => (source === undefined) !== (location === undefined), {
    error: 'expected either "source" or "location"',
  });

export type ScanBody = z.output<typeof schema>;

/** The request in a body. Throws HttpError REQUEST with every problem. */
export function parseScanBody(bytes: Uint8Array): ScanBody {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    throw new HttpError('REQUEST', `the body is no JSON: ${redact((error as Error).message)}`);
  }
  const checked = schema.safeParse(value);
  if (checked.success) return checked.data;
  const problems = checked.error.issues.slice(0, PROBLEMS_MAX).flatMap(problemsOf).slice(0, PROBLEMS_MAX);
  const [first] = problems;
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
  throw new HttpError('REQUEST', `${first!.path === '' ? '' : `${first!.path}: `}${first!.message}${more}`, {
    problems,
  });
}

function problemsOf(issue: z.core.$ZodIssue): RequestProblem[] {
  const path = issue.path.map(String).join('.');
  if (issue.code !== 'unrecognized_keys') return [{ path, message: issue.message }];
  return issue.keys.slice(0, PROBLEMS_MAX).map((key) => {
    const meant = nearest(key, Object.keys(shape));
    const message = meant === undefined ? `expected one of ${Object.keys(shape).join(', ')}` : `did you mean ${meant}?`;
    return { path: key.slice(0, 80), message: `unknown name; ${message}` };
  });
}
