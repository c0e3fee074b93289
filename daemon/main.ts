/** The command line: from arguments and environment to a command, and from how that ended to an exit code. */
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import packageJson from '../package.json' with { type: 'json' };
import { COMMANDS, type CommandName, type CommandSpec } from './command-table.ts';
import type { CommandContext } from './commands/command.ts';
import { Interruption } from './commands/interruption.ts';
import { CommandError } from './errors.ts';
import { EXIT, type ExitCode, exitCodeOf, isExpected } from './exit-codes.ts';
import { commandPage, programPage } from './help/page.ts';
import { pageText } from './help/text.ts';
import { HELP_COLUMNS_DEFAULT } from './limits.ts';
import type { OptionSpec } from './option-spec.ts';
import { flagOf, OPTIONS, type OptionName, specOf, valueForm, variableOf } from './options.ts';
import { printable } from './output/printable.ts';

type Run = (context: CommandContext) => Promise<void>;

/** What the command line and the environment say. */
type Given = Omit<CommandContext, 'interruption'>;

/** Commands are loaded when they are run: help should not wait for engines. */
const RUN: Readonly<Record<CommandName, () => Promise<Run>>> = {
  serve: async () => (await import('./commands/serve.ts')).serve,
  pack: async () => (await import('./commands/pack.ts')).pack,
  ls: async () => (await import('./commands/ls.ts')).ls,
  inspect: async () => (await import('./commands/inspect.ts')).inspect,
  scan: async () => (await import('./commands/scan.ts')).scan,
  mount: async () => (await import('./commands/mount.ts')).mount,
  unmount: async () => (await import('./commands/unmount.ts')).unmount,
  daemon: async () => (await import('./commands/daemon.ts')).daemon,
  config: async () => (await import('./commands/config.ts')).config,
  'verbs-check': async () => (await import('./commands/verbs-check.ts')).verbsCheck,
  cp: async () => (await import('./commands/cp.ts')).cp,
  demo: async () => (await import('./commands/demo.ts')).demo,
  completion: async () => (await import('./commands/completion.ts')).completion,
  help: async () => (await import('./commands/help.ts')).help,
};

/** Runs the command line `args` and returns the exit code; never throws. */
export async function main(args: readonly string[]): Promise<ExitCode> {
  // Without a listener an error of these streams ends the process; whoever writes hears of it by the write.
  process.stdout.on('error', () => {});
  process.stderr.on('error', () => {});
  let exitCode: ExitCode = EXIT.OK;
  const program = makeProgram(async (name, given) => {
    exitCode = await runCommand(name, given);
  });
  try {
    await program.parseAsync(withPresets(args), { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) exitCode = error.exitCode === 0 ? EXIT.OK : EXIT.USAGE;
    else {
      tell('qanat', error, wantsDebug());
      exitCode = exitCodeOf(error);
    }
  }
  await new Promise((resolve) => {
    process.stderr.write('', resolve);
    setTimeout(resolve, 500).unref();
  });
  return exitCode;
}

async function runCommand(name: CommandName, given: Given): Promise<ExitCode> {
  const { options } = given;
  const interruption = new Interruption();
  try {
    const run = await RUN[name]();
    await run({ ...given, interruption });
    return EXIT.OK;
  } catch (error) {
    if (interruption.code !== undefined) return interruption.code;
    const exitCode = exitCodeOf(error);
    if (exitCode !== EXIT.OK) tell(`qanat ${name}`, error, options.debug ?? false);
    return exitCode;
  } finally {
    interruption.dispose();
  }
}

/** One line for a person; with `debug` also where it comes from. */
function tell(who: string, error: unknown, debug: boolean): void {
  const message = error instanceof Error ? error.message : String(error);
  const kind = isExpected(error) ? '' : 'a bug of Qanat: ';
  process.stderr.write(`${who}: ${kind}${printable(message)}\n`);
  if (error instanceof CommandError) for (const line of error.details) process.stderr.write(`  ${printable(line)}\n`);
  if (debug) process.stderr.write(`${stackOf(error)}\n`);
  else if (kind !== '') process.stderr.write(`${who}: --debug shows where\n`);
}

function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  const own = error.stack ?? String(error);
  return error.cause === undefined ? own : `${own}\ncaused by: ${stackOf(error.cause)}`;
}

function wantsDebug(): boolean {
  return process.argv.includes('--debug') || (process.env.QANAT_DEBUG ?? '') !== '';
}

/** The program; `act` is called with the chosen command. Exported for tests of its help. */
export function makeProgram(act: (name: CommandName, given: Given) => Promise<void>): Command {
  const program = new Command('qanat')
    .version(packageJson.version)
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(mistakeText('qanat', text)) })
    .configureHelp({ formatHelp: (command) => helpText(command.name()) })
    .helpCommand(false);
  for (const [name, spec] of Object.entries(COMMANDS) as [CommandName, CommandSpec][]) {
    const command = program
      .command(`${name} ${spec.operands}`.trim())
      .configureOutput({ outputError: (text, write) => write(mistakeText(`qanat ${name}`, text)) });
    for (const option of spec.options) for (const one of commanderOptions(option)) command.addOption(one);
    command.action(async (...given: unknown[]) => {
      const operands = given
        .slice(0, -2)
        .flat()
        .filter((one) => one !== undefined)
        .map(String);
      await act(name, { operands, ...readOptions(spec, command) });
    });
  }
  return program;
}

/** A mistake in the command line as one line, like all errors. */
function mistakeText(who: string, text: string): string {
  const what = text
    .replace(/^error: /, '')
    .trim()
    .replace(/\.?\s*\n\s*/g, ' ');
  return `${who}: ${printable(what)}; see ${who} --help\n`;
}

function helpText(name: string): string {
  const page = Object.hasOwn(COMMANDS, name) ? commandPage(name as CommandName) : programPage();
  return pageText(page, process.stdout.columns ?? HELP_COLUMNS_DEFAULT);
}

function commanderOptions(name: OptionName): Option[] {
  const spec = specOf(name);
  const short = spec.short === undefined ? '' : `-${spec.short}, `;
  const value = valueForm(spec);
  const option = new Option(`${short}${flagOf(name)}${value}`);
  if (spec.argument !== undefined) option.argParser((text, previous) => parseFor(spec, text, previous));
  if (spec.preset !== undefined) option.preset(spec.preset);
  if (spec.negatable !== true) return [option];
  return [option, new Option(`--no-${flagOf(name).slice(2)}`)];
}

/** An option that may stand without its value does not take what makes no sense as one: it may be an operand. */
function withPresets(args: readonly string[]): string[] {
  const names = Object.keys(OPTIONS) as OptionName[];
  const presets = new Map(
    names.filter((name) => specOf(name).preset !== undefined).map((name) => [flagOf(name), name]),
  );
  return args.map((arg, k) => {
    const name = presets.get(arg);
    const next = args[k + 1];
    if (name === undefined || next === undefined || args.slice(0, k).includes('--')) return arg;
    try {
      specOf(name).parse(next);
      return arg;
    } catch {
      return `${arg}=${specOf(name).preset}`;
    }
  });
}

function parseFor(spec: OptionSpec<unknown>, text: string, previous: unknown): unknown {
  try {
    return spec.parse(text, previous);
  } catch (error) {
    if (error instanceof CommandError) throw new InvalidArgumentError(error.message);
    throw error;
  }
}

/** The options given, and for those that were not the environment's, where it has them. */
function readOptions(spec: CommandSpec, command: Command): Omit<Given, 'operands'> {
  const values: Record<string, unknown> = {};
  const origins: Record<string, 'flag' | 'variable'> = {};
  for (const name of spec.options) {
    if (command.getOptionValueSource(name) === 'cli') {
      values[name] = command.getOptionValue(name);
      origins[name] = 'flag';
      continue;
    }
    const text = process.env[variableOf(name)];
    if (text === undefined || text === '') continue;
    try {
      values[name] = OPTIONS[name].parse(text);
      origins[name] = 'variable';
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      throw new CommandError('USAGE', `${variableOf(name)}: ${error.message}`);
    }
  }
  return { options: values, origins };
}
