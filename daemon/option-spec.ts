/** What one option is, and the kinds that most are of. */
import { bytesFrom, oneOf, parseSwitch, wholeFrom } from './argument.ts';

export interface OptionSpec<T> {
  /** Letter of the short form. */
  readonly short?: string;
  /** What stands for the value in help; absent for a switch. */
  readonly argument?: string;
  /** The values that there are, for completion. */
  readonly choices?: readonly string[];
  /** What kind of path the value is, for completion. */
  readonly takes?: 'file' | 'folder';
  /** A switch that also has a --no- form. */
  readonly negatable?: boolean;
  /** The value that it has when none is given with it. */
  readonly preset?: string;
  /** The value of a text; `previous` is there when an option is given again. */
  readonly parse: (text: string, previous?: T) => T;
  /** What holds when it is not given, in words. */
  readonly without: string;
  readonly meaning: string;
}

export const toggle = (meaning: string): OptionSpec<boolean> => ({ parse: parseSwitch, without: 'off', meaning });

export const whole = (argument: string, least: number, most: number) => ({ argument, parse: wholeFrom(least, most) });
export const choice = <const T extends string>(argument: string, names: readonly T[]) => ({
  argument,
  parse: oneOf(...names),
  choices: names,
});
export const bytes = (least: number, most: number) => ({ argument: 'bytes', parse: bytesFrom(least, most) });
export const file = {
  argument: 'file',
  takes: 'file' as const,
  parse: (text: string): string => text,
};
