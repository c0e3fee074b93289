/** Completion for fish, 3.0 and newer. */
import {
  type CompletedCommand,
  type CompletedOption,
  commandNames,
  completedCommands,
  PROGRAM_OPTIONS,
  SCHEMES,
  type ValueKind,
} from './model.ts';

/** The script. */
export function fishCompletion(): string {
  const commands = completedCommands();
  return `# fish completion for qanat, made by "qanat completion fish"

# whether the command typed so far is the one named; without a name, whether there is none yet
function __qanat_command_is
    set -l words (commandline -opc)
    for word in $words[2..-1]
        if not string match -q -- '-*' $word
            test "$word" = "$argv[1]"
            return
        end
    end
    test -z "$argv[1]"
end

complete -c qanat -f
${PROGRAM_OPTIONS.map((option) => optionLine('__qanat_command_is', option)).join('\n')}
${commands.map(({ name, summary }) => `complete -c qanat -n __qanat_command_is -a ${name} -d ${quoted(summary)}`).join('\n')}
${commands.flatMap(commandLines).join('\n')}
`;
}

function commandLines({ name, options, operands }: CompletedCommand): string[] {
  const condition = quoted(`__qanat_command_is ${name}`);
  const actions = new Set(operands.flatMap(({ kind }) => actionsOf(kind)));
  return [
    ...options.map((option) => optionLine(condition, option)),
    ...[...actions].map((action) => `complete -c qanat -n ${condition} ${action}`),
  ];
}

function optionLine(condition: string, { flags, argument, value, meaning }: CompletedOption): string {
  const names = flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`));
  const values = argument === undefined ? '' : ` ${valueAction(value)}`;
  return `complete -c qanat -n ${condition} ${names.join(' ')}${values} -d ${quoted(meaning)}`;
}

/** -x: needs a value, which is no file; -r -F: needs one, which is. */
function valueAction(kind: ValueKind): string {
  if (kind === 'nothing') return '-x';
  const actions = actionsOf(kind);
  return actions.includes('-F') ? `-r ${actions.join(' ')}` : `-x ${actions.join(' ')}`;
}

function actionsOf(kind: Exclude<ValueKind, 'nothing'>): string[] {
  if (typeof kind !== 'string') return [`-a ${quoted(kind.join(' '))}`];
  switch (kind) {
    case 'location':
      return ['-F', `-a ${quoted(SCHEMES.join(' '))}`];
    case 'file':
      return ['-F'];
    case 'folder':
      return ["-a '(__fish_complete_directories)'"];
    case 'command':
      return [`-a ${quoted(commandNames().join(' '))}`];
  }
}

const quoted = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`;
