/** What completion scripts know: commands, options, what their values and arguments are; from the tables of help. */
import { COMMANDS, type CommandName, type CommandSpec } from '../command-table.ts';
import { MANUAL, type OperandKind } from '../help/manual.ts';
import { operandsOf } from '../help/page.ts';
import { flagOf, type OptionName, specOf } from '../options.ts';

/** `nothing` is a value that only its user knows. */
export type ValueKind = OperandKind | 'nothing';

export interface CompletedOption {
  /** `-o`, `--output` */
  readonly flags: readonly string[];
  /** What stands for the value; absent for a switch. */
  readonly argument?: string;
  readonly value: ValueKind;
  readonly meaning: string;
}

export interface CompletedOperand {
  readonly label: string;
  readonly kind: OperandKind;
  /** It and all that follow. */
  readonly repeats: boolean;
}

export interface CompletedCommand {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly CompletedOption[];
  readonly operands: readonly CompletedOperand[];
}

const HELP: CompletedOption = { flags: ['-h', '--help'], value: 'nothing', meaning: 'Show help' };
const VERSION: CompletedOption = { flags: ['-V', '--version'], value: 'nothing', meaning: 'Print the version' };

/** Options of `qanat` itself. */
export const PROGRAM_OPTIONS: readonly CompletedOption[] = [HELP, VERSION];

/** What a location may begin with, besides a path. */
export const SCHEMES = ['rdma://', 'rdmas://', 's3://', 'https://', 'http://', 'file:///'] as const;

export function completedCommands(): CompletedCommand[] {
  return (Object.entries(COMMANDS) as [CommandName, CommandSpec][]).map(([name, spec]) => ({
    name,
    summary: plain(spec.summary),
    options: [...spec.options.flatMap(optionsOf), HELP],
    operands: operandsOf(spec).map((operand, k) => ({
      label: operand.replace(/[<>[\].]/g, ''),
      kind: MANUAL[name].operands[k]?.kind ?? 'file',
      repeats: operand.includes('...'),
    })),
  }));
}

/** Names of commands, for arguments that are one. */
export function commandNames(): string[] {
  return Object.keys(COMMANDS);
}

function optionsOf(name: OptionName): CompletedOption[] {
  const spec = specOf(name);
  const flags = [...(spec.short === undefined ? [] : [`-${spec.short}`]), flagOf(name)];
  const meaning = plain(spec.meaning);
  // one that may stand alone is offered as it stands
  if (spec.argument !== undefined && spec.preset === undefined) {
    return [{ flags, argument: spec.argument, value: spec.choices ?? spec.takes ?? 'nothing', meaning }];
  }
  const option: CompletedOption = { flags, value: 'nothing', meaning };
  if (spec.negatable !== true) return [option];
  return [option, { ...option, flags: [`--no-${flagOf(name).slice(2)}`], meaning: `Not: ${meaning}` }];
}

/** The first clause, which is what there is room for. */
const plain = (text: string): string =>
  text
    .replaceAll('`', '')
    .split(/[;:(]|\. /)[0]!
    .trim();
