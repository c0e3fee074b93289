/**
 * A command's manual as data, from the tables of commands, options and exit codes and from manual.ts. text.ts shows it
 * on a terminal, roff.ts as a manual page.
 */
import { COMMANDS, type CommandName, type CommandSpec } from '../command-table.ts';
import { EXIT_CODE_MEANINGS } from '../exit-codes.ts';
import { flagOf, type OptionName, specOf, valueForm, variableOf } from '../options.ts';
import { MANUAL } from './manual.ts';
import { GROUP_OF, GROUP_TITLES, type GroupName } from './option-groups.ts';

export interface Entry {
  /** What the text explains, in the form in which it is typed. */
  readonly term: string;
  readonly text: string;
}

export interface Section {
  readonly title: string;
  readonly paragraphs: readonly string[];
  readonly entries: readonly Entry[];
}

export interface HelpPage {
  /** `qanat scan` */
  readonly name: string;
  readonly summary: string;
  readonly usage: string;
  readonly sections: readonly Section[];
}

/** Variables that are no option's. */
const OTHER_VARIABLES: readonly Entry[] = [
  {
    term: 'QANAT_KERNELS',
    text: 'Kernels that decode: `wasm`, or `scalar`, which is slow and meant for finding mistakes (default: wasm)',
  },
  { term: 'TMPDIR', text: 'Folder for temporary files (default: /tmp)' },
];

const section = (title: string, paragraphs: readonly string[], entries: readonly Entry[] = []): Section => ({
  title,
  paragraphs,
  entries,
});

/** The manual of a command. */
export function commandPage(name: CommandName): HelpPage {
  const spec: CommandSpec = COMMANDS[name];
  const manual = MANUAL[name];
  const operands = operandsOf(spec).map((term, k) => ({ term, text: manual.operands[k]?.meaning ?? '' }));
  return {
    name: `qanat ${name}`,
    summary: spec.summary,
    usage: `qanat ${name} [options] ${spec.operands}`.trim(),
    sections: [
      section('Description', manual.description),
      section('Arguments', [], operands),
      ...optionSections(spec),
      section(
        'Examples',
        [],
        spec.examples.map(([line, what]) => ({ term: `$ ${line}`, text: what })),
      ),
      exitCodes(),
      section(
        'Environment',
        ['Each option can be set by the variable in brackets behind it; what is given on the command line wins.'],
        OTHER_VARIABLES,
      ),
      section('See also', [manual.seeAlso.map((other) => `\`qanat ${other} --help\``).join(', ')]),
    ].filter(({ paragraphs, entries }) => paragraphs.length + entries.length > 0),
  };
}

/** The manual of the whole. */
export function programPage(): HelpPage {
  return {
    name: 'qanat',
    summary: 'Remote Parquet, served by range and scanned fast',
    usage: 'qanat <command> [options] …',
    sections: [
      section('Description', [
        'A server gives the bytes of Parquet files to other machines by range; a client plans which bytes the columns ' +
          'asked for take, fetches them ahead of their use and decodes them while they arrive.',
      ]),
      section('Commands', [], commandEntries()),
      section('Options', [], [helpEntry(), { term: '-V, --version', text: 'Print the version' }]),
      section(
        'Examples',
        [],
        [
          { term: '$ qanat serve /data/lake', text: 'serve a folder on 127.0.0.1:7400' },
          { term: '$ qanat scan rdma://127.0.0.1:7400/lineitem.parquet', text: 'its first rows as a table' },
          { term: '$ qanat demo', text: 'see it work' },
        ],
      ),
      exitCodes(),
      section('See also', ['`qanat <command> --help` shows options and examples of a command.']),
    ],
  };
}

/** `<url>` and `<file>` of `<url> <file>`. */
export function operandsOf(spec: CommandSpec): string[] {
  return spec.operands.split(' ').filter((operand) => operand !== '');
}

/** All forms of an option: `-o, --output <file>`. */
export function optionForms(name: OptionName): string[] {
  const spec = specOf(name);
  const value = valueForm(spec);
  return [
    ...(spec.short === undefined ? [] : [`-${spec.short}`]),
    `${flagOf(name)}${value}`,
    ...(spec.negatable ? [`--no-${flagOf(name).slice(2)}`] : []),
  ];
}

function optionSections(spec: CommandSpec): Section[] {
  const titles = Object.entries(GROUP_TITLES) as [GroupName, string][];
  return titles.map(([group, title]) => {
    const names = spec.options.filter((name) => GROUP_OF[name] === group);
    return section(title, [], [...names.map(optionEntry), ...(group === 'general' ? [helpEntry()] : [])]);
  });
}

function optionEntry(name: OptionName): Entry {
  const { meaning, without } = specOf(name);
  return { term: optionForms(name).join(', '), text: `${meaning} (default: ${without}) [${variableOf(name)}]` };
}

const helpEntry = (): Entry => ({ term: '-h, --help', text: 'Show this' });

function commandEntries(): Entry[] {
  const specs: readonly CommandSpec[] = Object.values(COMMANDS);
  return specs.map(({ name, operands, summary }) => ({ term: `${name} ${operands}`.trim(), text: summary }));
}

function exitCodes(): Section {
  // the table of the README is Markdown, where a bar in a cell has a backslash
  const entries = EXIT_CODE_MEANINGS.map(([code, text]) => ({ term: String(code), text: text.replaceAll('\\|', '|') }));
  return section('Exit codes', [], entries);
}
