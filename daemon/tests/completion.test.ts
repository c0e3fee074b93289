/**
 * Completion in the shells themselves. A shell that is not installed is skipped, except that every script must name all
 * commands and options. zsh completes in a terminal of its own (zsh/zpty), since it does so nowhere else.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { COMMANDS, type CommandSpec } from '../command-table.ts';
import { bashCompletion } from '../completion/bash.ts';
import { fishCompletion } from '../completion/fish.ts';
import { zshCompletion } from '../completion/zsh.ts';
import { optionForms } from '../help/page.ts';
import { SCAN_FORMATS } from '../options.ts';
import { qanat } from './command-run.ts';
import { Lake } from './lake.ts';

const NAMES = Object.keys(COMMANDS);
const SHELL_MS = 20_000;

const missing = (shell: string): string | false =>
  spawnSync(shell, ['-c', 'exit 0']).error === undefined ? false : `no ${shell} here`;

/** A folder with the script, a Parquet file and a folder to complete. */
async function playground(script: string): Promise<Lake> {
  const place = await Lake.create();
  await writeFile(place.path('script'), script);
  await writeFile(place.path('data file.parquet'), '');
  await mkdir(place.path('data folder'));
  return place;
}

function runShell(shell: string, args: readonly string[], cwd: string, input = ''): string {
  const env = { PATH: process.env.PATH ?? '', HOME: cwd, TERM: 'dumb', LC_ALL: 'C.UTF-8' };
  return execFileSync(shell, args, { cwd, env, encoding: 'utf8', input, timeout: SHELL_MS, stdio: 'pipe' });
}

/** The words of a line as bash cuts it: `=` and `:` stand alone, the last one may be empty. */
const bashWords = (line: string): string[] => line.split(/(?<=[=:])|(?=[=:])| /).map((word) => word.trim());

/** What bash would offer for the end of each line. */
function completeInBash(place: Lake, lines: readonly string[]): string[][] {
  const script = ['. ./script', 'complete -p qanat'];
  for (const line of lines) {
    const words = bashWords(line);
    script.push(`COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')})`, `COMP_CWORD=${words.length - 1}`);
    script.push('_qanat', `printf '%s\\n' "\${COMPREPLY[@]}" ---`);
  }
  const [first, ...rest] = runShell('bash', ['--norc', '--noprofile'], place.folder, `${script.join('\n')}\n`).split(
    '\n',
  );
  assert.equal(first, 'complete -F _qanat qanat');
  const answers = rest.join('\n').split('---\n').slice(0, -1);
  return answers.map((answer) => answer.split('\n').filter((one) => one !== ''));
}

describe('bash', { skip: missing('bash') }, () => {
  test('offers commands, options, values and paths', async () => {
    await using place = await playground(bashCompletion());
    const ask = (...lines: string[]): string[][] => completeInBash(place, lines);
    const [commands, scans, options, forms, afterEqual, begun] = ask(
      'qanat ',
      'qanat sc',
      'qanat scan --pre',
      'qanat scan --format ',
      'qanat scan --format=',
      'qanat scan --format=nd',
    );
    assert.deepEqual(commands, NAMES);
    assert.deepEqual(scans, ['scan']);
    assert.deepEqual(options, ['--prefetch-depth', '--preserve-order']);
    assert.deepEqual(forms, [...SCAN_FORMATS]);
    assert.deepEqual(afterEqual, [...SCAN_FORMATS]);
    assert.deepEqual(begun, ['ndjson']);
    const [files, schemes, server, columns, target, shells] = ask(
      'qanat scan --limit 3 da',
      'qanat ls rd',
      'qanat ls rdma://da',
      'qanat scan --columns da',
      'qanat cp rdma://host:7400/da --json da',
      'qanat completion ',
    );
    assert.deepEqual(files?.toSorted(), ['data file.parquet', 'data folder']);
    assert.deepEqual(schemes, ['rdma://', 'rdmas://']);
    assert.deepEqual(server, []);
    assert.deepEqual(columns, []);
    assert.deepEqual(target?.toSorted(), ['data file.parquet', 'data folder']);
    assert.deepEqual(shells, ['bash', 'zsh', 'fish']);
    const [url] = ask(`qanat ls file://${place.folder}/data`);
    assert.deepEqual(url?.toSorted(), [`//${place.folder}/data file.parquet`, `//${place.folder}/data folder`]);
  });
});

describe('fish', { skip: missing('fish') }, () => {
  test('offers commands, options, values and paths', async () => {
    await using place = await playground(fishCompletion());
    const ask = (line: string): string[] =>
      runShell('fish', ['--no-config', '-c', 'source script; complete -C $argv[1]', line], place.folder)
        .split('\n')
        .map((one) => one.split('\t')[0]!)
        .filter((one) => one !== '');
    assert.deepEqual(ask('qanat ').toSorted(), NAMES.toSorted());
    assert.deepEqual(ask('qanat scan --pre').toSorted(), ['--prefetch-depth', '--preserve-order']);
    assert.deepEqual(ask('qanat scan --format ').toSorted(), SCAN_FORMATS.toSorted());
    assert.deepEqual(ask('qanat scan --format=nd'), ['--format=ndjson']);
    assert.deepEqual(ask('qanat scan da').toSorted(), ['data file.parquet', 'data folder/']);
    assert.deepEqual(ask('qanat help sc'), ['scan']);
    assert.deepEqual(ask('qanat ls rd'), ['rdma://', 'rdmas://']);
    assert.deepEqual(ask('qanat completion z'), ['zsh']);
  });
});

/** Types each line into a zsh, presses Tab and reports what the line has become. */
const ZSH_SESSION = `
zmodload zsh/zpty
zpty -b qanat zsh -f -i
zpty -w qanat 'PS1=; KEYTIMEOUT=1; autoload -Uz compinit; compinit -D -u; unsetopt beep list_beep; setopt no_always_last_prompt'
zpty -w qanat 'source ./script; report() { print -r -- "$BUFFER" >> lines; BUFFER= }; zle -N report; bindkey "^X" report'
zpty -w qanat 'print ready >> lines'
integer done=1 tries
while read -r line; do
  zpty -n -w qanat "$line"$'\\t\\x18'
  (( done++ ))
  for (( tries = 0; tries < 500; tries++ )); do
    zpty -r -t qanat ignored
    [[ -f lines && $(wc -l < lines) -ge $done ]] && break
    sleep 0.02
  done
done
zpty -d qanat
`;

describe('zsh', { skip: missing('zsh') }, () => {
  test('completes commands, options, values and paths', async () => {
    await using place = await playground(zshCompletion());
    const cases: [typed: string, becomes: string][] = [
      ['qanat sc', 'qanat scan '],
      ['qanat scan --pref', 'qanat scan --prefetch-depth='],
      ['qanat scan --no-pre', 'qanat scan --no-preserve-order '],
      ['qanat scan --format nd', 'qanat scan --format ndjson '],
      ['qanat scan --format=nd', 'qanat scan --format=ndjson '],
      ['qanat scan --limit 3 data\\ fi', 'qanat scan --limit 3 data\\ file.parquet '],
      ['qanat serve --all data\\ fo', 'qanat serve --all data\\ folder/'],
      ['qanat help sc', 'qanat help scan '],
      ['qanat ls rdmas', 'qanat ls rdmas://'],
      ['qanat completion z', 'qanat completion zsh '],
    ];
    const typed = `${cases.map(([line]) => line).join('\n')}\n`;
    await writeFile(place.path('session'), ZSH_SESSION);
    runShell('zsh', ['-f', 'session'], place.folder, typed);
    const lines = (await readFile(place.path('lines'), 'utf8')).split('\n');
    assert.deepEqual(
      lines.slice(1, -1),
      cases.map(([, becomes]) => becomes),
    );
  });
});

describe('any script', () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    test(`that of ${shell} names every command and option`, async () => {
      const { code, text, errors } = await qanat(['completion', shell]);
      assert.equal(errors, '');
      assert.equal(code, 0);
      const specs: readonly CommandSpec[] = Object.values(COMMANDS);
      for (const { name, options } of specs) {
        assert.ok(text.includes(name));
        for (const form of options.flatMap(optionForms)) {
          const flag = form.split(' ')[0]!;
          const written = shell === 'fish' ? flag.replace(/^--?/, (dashes) => (dashes === '--' ? '-l ' : '-s ')) : flag;
          assert.ok(text.includes(written), `${shell}: ${name} ${flag}`);
        }
      }
    });
  }

  test('of another shell is refused', async () => {
    const { code, errors } = await qanat(['completion', 'tcsh']);
    assert.equal(code, 2);
    assert.equal(errors, 'qanat completion: no completion for tcsh: expected one of bash, zsh, fish\n');
  });
});
