/** Manuals: complete, the same by every way to them, readable at any width, and with examples that are what they say. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { COMMANDS, type CommandName, type CommandSpec } from '../command-table.ts';
import { MANUAL } from '../help/manual.ts';
import { commandPage, operandsOf, programPage } from '../help/page.ts';
import { pageRoff } from '../help/roff.ts';
import { pageText } from '../help/text.ts';
import { makeProgram } from '../main.ts';
import { flagOf, variableOf } from '../options.ts';
import { qanat } from './command-run.ts';

const NAMES = Object.keys(COMMANDS) as CommandName[];
const specOf = (name: CommandName): CommandSpec => COMMANDS[name];

/** What a shell makes of a line, as far as examples need it. */
function wordsOf(line: string): string[] {
  const command = line.replace(/^source <\((.*)\)$/, '$1').replace(/ [|>] .*$/, '');
  return [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain!);
}

for (const name of NAMES) {
  describe(`the manual of ${name}`, () => {
    test('has all that manuals have', () => {
      const page = commandPage(name);
      const titles = page.sections.map(({ title }) => title);
      for (const title of ['Description', 'General', 'Examples', 'Exit codes', 'Environment', 'See also']) {
        assert.ok(titles.includes(title), title);
      }
      const text = pageText(page, 100);
      for (const option of specOf(name).options) {
        assert.ok(text.includes(flagOf(option)), flagOf(option));
        assert.ok(text.replace(/\n +/g, ' ').includes(`[${variableOf(option)}]`), variableOf(option));
      }
      assert.equal(MANUAL[name].operands.length, operandsOf(specOf(name)).length, 'every argument is explained');
      assert.ok(!MANUAL[name].seeAlso.includes(name));
    });

    test('has examples that the command line takes', async () => {
      const commands: CommandName[] = [];
      for (const [line] of specOf(name).examples) {
        const program = makeProgram(async (taken) => void commands.push(taken));
        const [command, ...args] = wordsOf(line);
        assert.equal(command, 'qanat');
        await program.parseAsync(args, { from: 'user' });
      }
      assert.equal(commands.length, specOf(name).examples.length);
      assert.ok(commands.includes(name));
    });

    test('fits the width of its terminal', () => {
      for (const columns of [20, 60, 80, 100, 500]) {
        const lines = pageText(commandPage(name), columns).split('\n');
        const width = Math.min(Math.max(columns, 50), 110);
        // what is typed is never broken
        const long = lines.filter((line) => line.length > width && !/^ {2}\$? ?\S|^Usage:|^ +\S+$/.test(line));
        assert.deepEqual(long, [], `${columns} columns`);
      }
    });
  });
}

describe('help', () => {
  test('is the same however it is asked for', async () => {
    for (const name of ['scan', 'help']) {
      const flag = await qanat([name, '--help']);
      assert.equal(flag.code, 0);
      assert.equal(flag.errors, '');
      assert.deepEqual(await qanat(['help', name]), flag);
      assert.deepEqual(await qanat([name, '-h']), flag);
    }
    const whole = await qanat(['--help']);
    assert.deepEqual(await qanat(['help']), whole);
    for (const name of NAMES) assert.match(whole.text, new RegExp(`^  ${name}( |$)`, 'm'));
    const bare = await qanat([]);
    assert.equal(bare.code, 2);
    assert.equal(bare.errors, whole.text);
  });

  test('of what is no command ends with 2', async () => {
    const { code, errors } = await qanat(['help', 'scna']);
    assert.equal(code, 2);
    assert.match(errors, /^qanat help: no command scna: expected one of serve, .*\n$/);
  });

  test('as roff has only requests that it means', () => {
    for (const page of [programPage(), ...NAMES.map(commandPage)]) {
      const roff = pageRoff(page, '1.2.3');
      const requests = roff.split('\n').filter((line) => /^[.']/.test(line));
      assert.deepEqual(
        requests.filter((line) => !/^\.(TH|SH|PP|TP|B)( |$)/.test(line)),
        [],
      );
      assert.match(
        roff,
        /^\.TH QANAT(-[A-Z]+)* 1 "" "Qanat 1\.2\.3" "Qanat Manual"\n\.SH NAME\nqanat(\\-[a-z]+)* \\- /,
      );
    }
  });

  const groff = spawnSync('groff', ['--version']).error === undefined;
  test('as roff is formatted without a warning', { skip: groff ? false : 'no groff here' }, () => {
    for (const page of [programPage(), ...NAMES.map(commandPage)]) {
      const args = ['-man', '-Tutf8', '-ww', '-P-cbou'];
      const { stdout, stderr } = spawnSync('groff', args, { input: pageRoff(page, '1.2.3'), encoding: 'utf8' });
      assert.equal(stderr, '');
      for (const { title } of page.sections) assert.ok(stdout.includes(title.toUpperCase()), title);
    }
  });
});
