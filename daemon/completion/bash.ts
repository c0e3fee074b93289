/**
 * Completion for bash, 3.2 (that of macOS) and newer, without the bash-completion package. bash takes `=` and `:` for
 * words of their own, so that `--format=csv` and `rdma://host` come in pieces.
 */
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
export function bashCompletion(): string {
  const commands = completedCommands();
  return `# bash completion for qanat, made by "qanat completion bash"

_qanat_words() {
  COMPREPLY=($(compgen -W "$1" -- "$cur"))
}

# $1: -f for files, -d for folders; $2: what stands before each
_qanat_paths() {
  local line
  compopt -o filenames 2>/dev/null
  while IFS= read -r line; do
    COMPREPLY+=("$2$line")
  done < <(compgen "$1" -- "\${cur#"$2"}")
}

_qanat_location() {
  if [[ $cur == ':' || $prev == ':' ]]; then
    if [[ $prev == ':' && \${COMP_WORDS[COMP_CWORD-2]} == file && $cur == //* ]]; then _qanat_paths -f //; fi
    return
  fi
  _qanat_paths -f ''
  case $cur in
    rdma | file) ;;
    *) local schemes=($(compgen -W '${SCHEMES.join(' ')}' -- "$cur"))
      if ((\${#schemes[@]} > 0)) && [[ -n $cur ]]; then
        compopt -o nospace 2>/dev/null
        COMPREPLY+=("\${schemes[@]}")
      fi ;;
  esac
}

_qanat() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} command='' values='' operand=0 k word
  COMPREPLY=()
  if [[ $cur == '=' ]]; then
    cur=''
  elif [[ $prev == '=' ]]; then
    prev=\${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((k = 1; k < COMP_CWORD; k++)); do
    word=\${COMP_WORDS[k]}
    case $word in
      ':')
        ((k++))
        # what is typed now goes on with the argument before the colon
        if ((k == COMP_CWORD)); then ((operand--)); fi ;;
      -*)
        if [[ $values == *" $word "* ]]; then
          ((k++))
          if [[ \${COMP_WORDS[k]} == '=' ]]; then ((k++)); fi
        fi ;;
      *)
        if [[ -z $command ]]; then
          command=$word
          case $command in
${commands.map((command) => `            ${command.name}) values=' ${valueFlags(command).join(' ')} ' ;;`).join('\n')}
          esac
        else
          ((operand++))
        fi ;;
    esac
  done
  case $command in
    '')
      if [[ $cur == -* ]]; then
        _qanat_words '${PROGRAM_OPTIONS.flatMap(({ flags }) => flags).join(' ')}'
      else
        _qanat_words '${commandNames().join(' ')}'
      fi ;;
${commands.map(commandCase).join('\n')}
  esac
}

complete -F _qanat qanat
`;
}

function valueFlags({ options }: CompletedCommand): string[] {
  return options.filter(({ argument }) => argument !== undefined).flatMap(({ flags }) => flags);
}

function commandCase(command: CompletedCommand): string {
  const withValue = command.options.filter(({ argument }) => argument !== undefined);
  const values = withValue.length === 0 ? '' : `      case $prev in\n${valueCases(withValue)}\n      esac\n`;
  const operands = command.operands.map(({ kind, repeats }, k) => `          ${repeats ? '*' : k}) ${action(kind)} ;;`);
  const rest = operands.length === 0 ? ':' : `case $operand in\n${operands.join('\n')}\n        esac`;
  return `    ${command.name})
${values}      if [[ $cur == -* ]]; then
        _qanat_words '${command.options.flatMap(({ flags }) => flags).join(' ')}'
      else
        ${rest}
      fi ;;`;
}

function valueCases(options: readonly CompletedOption[]): string {
  return options.map(({ flags, value }) => `        ${flags.join(' | ')}) ${action(value)}; return ;;`).join('\n');
}

function action(kind: ValueKind): string {
  if (typeof kind !== 'string') return `_qanat_words '${kind.join(' ')}'`;
  switch (kind) {
    case 'location':
      return '_qanat_location';
    case 'file':
      return "_qanat_paths -f ''";
    case 'folder':
      return "_qanat_paths -d ''";
    case 'command':
      return `_qanat_words '${commandNames().join(' ')}'`;
    case 'nothing':
      return ':';
  }
}
