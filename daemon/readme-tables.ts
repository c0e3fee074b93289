/**
 * The README's tables of commands, options and exit codes, from the code. `node daemon/readme-tables.ts` writes them
 * into the README; a test fails when it was forgotten.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { COMMANDS, type CommandSpec } from './command-table.ts';
import { EXIT_CODE_MEANINGS } from './exit-codes.ts';
import { flagOf, OPTIONS, type OptionName, specOf, variableOf } from './options.ts';

export const README = join(import.meta.dirname, '../README.md');

const TABLES: Readonly<Record<string, () => string>> = {
  commands: () =>
    table(
      ['Command', 'What it does'],
      commands().map(({ name, operands, summary }) => [code(`qanat ${name} ${operands}`.trim()), summary]),
    ),
  options: () => table(['Option', 'Commands', 'Variable', 'Default', 'Meaning'], optionNames().map(optionRow)),
  'exit codes': () =>
    table(
      ['Code', 'Meaning'],
      EXIT_CODE_MEANINGS.map(([exitCode, meaning]) => [String(exitCode), meaning]),
    ),
};

function commands(): CommandSpec[] {
  return Object.values(COMMANDS);
}

function optionNames(): OptionName[] {
  return Object.keys(OPTIONS) as OptionName[];
}

function optionRow(name: OptionName): string[] {
  const spec = specOf(name);
  const flag = `${flagOf(name)}${spec.argument === undefined ? '' : ` <${spec.argument}>`}`;
  const forms = [
    ...(spec.short === undefined ? [] : [`-${spec.short}`]),
    flag,
    ...(spec.negatable ? [`--no-${flagOf(name).slice(2)}`] : []),
  ];
  const users = commands().filter(({ options }) => options.includes(name));
  return [
    forms.map(code).join(', '),
    users.length === commands().length ? 'all' : users.map((command) => command.name).join(', '),
    code(variableOf(name)),
    spec.without,
    spec.meaning,
  ];
}

const code = (text: string): string => `\`${text.replaceAll('|', '\\|')}\``;

function table(header: readonly string[], rows: ReadonlyArray<readonly string[]>): string {
  return [header, header.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

/** The text with the tables between their marks made anew. Throws when a mark is missing. */
export function withTables(readme: string): string {
  let text = readme;
  for (const [name, make] of Object.entries(TABLES)) {
    const start = `<!-- ${name}: made by daemon/readme-tables.ts -->`;
    const end = `<!-- end of ${name} -->`;
    const from = text.indexOf(start);
    const to = text.indexOf(end);
    if (from < 0 || to < from) throw new Error(`the README lacks ${start} … ${end}`);
    text = `${text.slice(0, from + start.length)}\n${make()}\n${text.slice(to)}`;
  }
  return text;
}

if (import.meta.main) writeFileSync(README, withTables(readFileSync(README, 'utf8')));
