/**
 * One setting of the daemon: an option of the command line that a YAML file may give as well. What a text means is the
 * option's business (options.ts), so that a flag, a variable and a file can't disagree; here is what YAML may hold in
 * its place, and how a value is shown.
 */
import { z } from 'zod';
import { CommandError } from '../errors.ts';
import { flagOf, OPTIONS, type OptionName, type OptionValues } from '../options.ts';
import { redact } from '../secrets.ts';
import { FOUND_CHARACTERS_SHOWN } from './limits.ts';

export type SettingValue<K extends OptionName> = NonNullable<OptionValues[K]>;

export interface Setting<K extends OptionName> {
  readonly option: K;
  /** Takes what YAML holds and gives the value; its messages say what was found and what was expected. */
  readonly schema: z.ZodType<SettingValue<K>>;
  /** What it is, in words: `a size such as 512MiB`. */
  readonly expected: string;
  /** What holds when nothing gives it. */
  readonly standard: SettingValue<K>;
  /** Whether a reload changes it in a running daemon. */
  readonly live: boolean;
  /** The value as it can be written in a file. */
  readonly show: (value: SettingValue<K>) => string;
}

interface Kind<K extends OptionName> {
  /** What is expected, in words. */
  readonly expected: string;
  readonly show?: (value: SettingValue<K>) => string;
}

/** `max-gap`: the name in a file. */
export function keyOf(name: OptionName): string {
  return flagOf(name).slice(2);
}

export function setting<K extends OptionName>(
  option: K,
  standard: SettingValue<K>,
  live: boolean,
  { expected, show = String }: Kind<K>,
): Setting<K> {
  const written = z.union([z.string(), z.number(), z.boolean()], { error: ({ input }) => mismatch(expected, input) });
  const schema = written.transform((value, context) => {
    try {
      return OPTIONS[option].parse(String(value)) as SettingValue<K>;
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      context.addIssue({ code: 'custom', message: redact(error.message) });
      return z.NEVER;
    }
  });
  return { option, schema, expected, standard, live, show };
}

/** `expected a size, found a list` */
export function mismatch(expected: string, input: unknown): string {
  return `expected ${expected}, found ${found(input)}`;
}

/** What stands in a file, in words. */
function found(input: unknown): string {
  if (input === undefined || input === null) return 'nothing';
  if (Array.isArray(input)) return 'a list';
  if (typeof input === 'object') return 'a map';
  const text = redact(typeof input === 'string' ? JSON.stringify(input) : String(input));
  return text.length > FOUND_CHARACTERS_SHOWN ? `${text.slice(0, FOUND_CHARACTERS_SHOWN)}…` : text;
}

/** `10s`, `500ms`. */
export function formatDuration(milliseconds: number): string {
  return milliseconds % 1000 === 0 ? `${milliseconds / 1000}s` : `${milliseconds}ms`;
}
