/**
 * The README's tables of commands, options and exit codes, and of what is read, from the code.
 * `node daemon/readme-tables.ts` writes them into the README; a test fails when it was forgotten.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { COMMANDS, type CommandSpec } from './command-table.ts';
import { configSchema, SOURCE_SETTINGS, settingMeta, settingOf } from './config/schema.ts';
import { EXIT_CODE_MEANINGS } from './exit-codes.ts';
import { GROUP_OF, GROUP_TITLES } from './help/option-groups.ts';
import { optionForms } from './help/page.ts';
import { OPTIONS, type OptionName, specOf, variableOf } from './options.ts';
import {
  CODECS_READ,
  CODECS_REFUSED,
  ENCODINGS_READ,
  LEVEL_ENCODINGS_READ,
  PHYSICAL_NAMES,
  SHAPES_READ,
  TYPES_READ,
} from './support.ts';

export const README = join(import.meta.dirname, '../README.md');

const TABLES: Readonly<Record<string, () => string>> = {
  commands: () =>
    table(
      ['Command', 'What it does'],
      commands().map(({ name, operands, summary }) => [code(`qanat ${name} ${operands}`.trim()), summary]),
    ),
  options: () => optionTables().join('\n\n'),
  configuration: () =>
    table(
      ['Setting', 'Value', 'Default', 'SIGHUP', 'Of a source'],
      [
        [
          code('sources'),
          'names, each with a location or with a map of `location` and settings of its own',
          'none',
          '✓',
          '',
        ],
        ...settingRows(),
      ],
    ),
  'exit codes': () =>
    table(
      ['Code', 'Meaning'],
      EXIT_CODE_MEANINGS.map(([exitCode, meaning]) => [String(exitCode), meaning]),
    ),
  encodings: () =>
    table(
      ['Encoding', ...PHYSICAL_NAMES.map((name) => name.replace('FIXED_LEN_BYTE_ARRAY', 'FIXED')), 'levels'],
      encodingNames().map((name) => [
        name,
        ...PHYSICAL_NAMES.map((type) => mark(ENCODINGS_READ[name]?.includes(type))),
        (levelVersions(name) ?? []).map((version) => `V${version}`).join(', '),
      ]),
    ),
  codecs: () =>
    table(
      ['Codec', 'V1 pages', 'V2 pages', ''],
      [
        ...CODECS_READ.map(({ codec, versions, note }) => [
          codec,
          mark(versions.includes(1)),
          mark(versions.includes(2)),
          note,
        ]),
        ...CODECS_REFUSED.map((codec) => [codec, '', '', 'refused with an error that says so']),
      ],
    ),
  types: () => table(['Type', 'Stored as', 'Arrow'], typeRows()),
  shapes: () =>
    table(
      ['Shape', 'Arrow'],
      SHAPES_READ.map(({ shape, arrow }) => [shape, arrow]),
    ),
};

const mark = (holds: boolean | undefined): string => (holds ? '✓' : '');

type EncodingName = keyof typeof ENCODINGS_READ;

const levelVersions = (name: EncodingName): readonly number[] | undefined =>
  LEVEL_ENCODINGS_READ.find(({ encoding }) => encoding === name)?.versions;

function encodingNames(): EncodingName[] {
  const all = [...Object.keys(ENCODINGS_READ), ...LEVEL_ENCODINGS_READ.map(({ encoding }) => encoding)];
  return [...new Set(all)] as EncodingName[];
}

/** A row for each annotation, whatever its parameters; for each storage where there is none. */
function typeRows(): string[][] {
  const rows = new Map<string, { name: string; storage: Set<string>; arrow: Set<string> }>();
  for (const { annotation, storage, arrow } of TYPES_READ) {
    const name = annotation.replace(/\(.*/, '');
    const key = name === '' ? storage : name;
    const row = rows.get(key) ?? { name, storage: new Set(), arrow: new Set() };
    row.storage.add(storage);
    row.arrow.add(arrow.replace(/\(.*\)/, '').replace(/\[5\]/, ''));
    rows.set(key, row);
  }
  return [...rows.values()].map(({ name, storage, arrow }) => [
    name === '' ? 'none' : name,
    [...storage].join(', '),
    [...arrow].map((one) => code(one)).join(', '),
  ]);
}

/** The settings of a file, from what validates one. */
function settingRows(): string[][] {
  return Object.entries(configSchema.shape).flatMap(([key, schema]) => {
    const meta = settingMeta.get(schema);
    if (meta === undefined) return [];
    const { option, expected, standard, live, show } = settingOf(meta.name);
    // what depends on the machine is said in words
    const without = option === 'decoders' ? specOf(option).without : show(standard);
    return [[code(key), expected, without, mark(live), mark(SOURCE_SETTINGS.some((name) => name === option))]];
  });
}

function commands(): CommandSpec[] {
  return Object.values(COMMANDS);
}

function optionNames(): OptionName[] {
  return Object.keys(OPTIONS) as OptionName[];
}

/** A table under each heading of the manuals. */
function optionTables(): string[] {
  return Object.entries(GROUP_TITLES).map(([group, title]) => {
    const names = optionNames().filter((name) => GROUP_OF[name] === group);
    return `**${title}**\n\n${table(['Option', 'Commands', 'Variable', 'Default', 'Meaning'], names.map(optionRow))}`;
  });
}

function optionRow(name: OptionName): string[] {
  const spec = specOf(name);
  const users = commands().filter(({ options }) => options.includes(name));
  return [
    optionForms(name).map(code).join(', '),
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
