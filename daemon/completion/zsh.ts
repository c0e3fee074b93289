/** Completion for zsh: a file `_qanat` in a folder of $fpath, or to be sourced after compinit. */
import {
  type CompletedCommand,
  type CompletedOperand,
  type CompletedOption,
  completedCommands,
  PROGRAM_OPTIONS,
  SCHEMES,
  type ValueKind,
} from './model.ts';

/** The script. */
export function zshCompletion(): string {
  const commands = completedCommands();
  const described = commands.map(({ name, summary }) => `    ${quoted(`${name}:${summary.replaceAll(':', '\\:')}`)}`);
  return `#compdef qanat
# zsh completion for qanat, made by "qanat completion zsh"

_qanat_commands() {
  local -a commands=(
${described.join('\n')}
  )
  _describe -t commands command commands
}

_qanat_location() {
  if compset -P 'file://'; then
    _files
  elif [[ $PREFIX == rdma:* ]]; then
    _message 'host:port/path'
  else
    local ret=1
    _files && ret=0
    compadd -S '' -- ${SCHEMES.join(' ')} && ret=0
    return ret
  fi
}

_qanat() {
  local context state state_descr line ret=1
  typeset -A opt_args
  _arguments -C -S ${PROGRAM_OPTIONS.map((option) => optionSpec(option)).join(' ')} \\
    '1:command:_qanat_commands' '*::argument:->arguments' && ret=0
  if [[ $state == arguments ]]; then
    case $words[1] in
${commands.map(commandCase).join('\n')}
    esac
  fi
  return ret
}

if [[ $funcstack[1] == _qanat ]]; then
  _qanat "$@"
else
  compdef _qanat qanat
fi
`;
}

function commandCase({ name, options, operands }: CompletedCommand): string {
  const specs = [...options.map(optionSpec), ...operands.map(operandSpec)];
  return `      ${name})
        _arguments -S \\
${specs.map((spec) => `          ${spec}`).join(' \\\n')} && ret=0 ;;`;
}

/** `'(-o --output)'{-o,--output=}'[File to write]:file:_files'` */
function optionSpec({ flags, argument, value, meaning }: CompletedOption): string {
  const isSwitch = argument === undefined;
  const forms = flags.map((flag) => (isSwitch ? flag : flag.startsWith('--') ? `${flag}=` : `${flag}+`));
  const text = `[${inBrackets(meaning)}]${isSwitch ? '' : `:${label(argument)}:${action(value)}`}`;
  const exclusive = flags.some((flag) => flag === '--help' || flag === '--version') ? '- *' : flags.join(' ');
  if (forms.length === 1) return quoted(`${forms[0]}${text}`);
  return `${quoted(`(${exclusive})`)}{${forms.join(',')}}${quoted(text)}`;
}

function operandSpec({ label: name, kind, repeats }: CompletedOperand, k: number): string {
  return quoted(`${repeats ? '*' : k + 1}:${label(name)}:${action(kind)}`);
}

function action(kind: ValueKind): string {
  if (typeof kind !== 'string') return `(${kind.join(' ')})`;
  switch (kind) {
    case 'location':
      return '_qanat_location';
    case 'file':
      return '_files';
    case 'folder':
      return '_files -/';
    case 'command':
      return '_qanat_commands';
    case 'nothing':
      return '';
  }
}

const label = (text: string): string => text.replaceAll(':', '\\:');

const inBrackets = (text: string): string => text.replace(/[[\]\\]/g, '\\$&');

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
