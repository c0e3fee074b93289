/**
 * Globs over the paths of a source. The whole path must match:
 *   *       any characters within a segment        ?       one character within a segment
 *   **      as a segment of its own: any number of segments, none too; at the end, everything below
 *   [a-z]   one character of a set, [!a-z] or [^a-z] one that is not
 *   {a,b}   either; may hold globs and "/"         \x      the character x itself
 * Letter case counts, a leading dot is a character like others, and what is not closed stands for itself.
 * A glob becomes a small program that runs over a path once, with all its states at a time: the time is at most the
 * product of the two lengths, whatever the pattern.
 */
import { FetchError } from '../fetcher/index.ts';
import { GLOB_NESTING_MAX, LOCATION_CHARACTERS_MAX } from './limits.ts';

export interface Glob {
  readonly pattern: string;
  /** The one path it matches when it has no wildcard. */
  readonly literal: string | undefined;
  /** The pattern with its wildcards taken as the characters they are: a file may be named like that. */
  readonly verbatim: string;
  /** What every match starts with: the characters before the first wildcard. */
  readonly lead: string;
  /** The folder in that: up to its last "/", or ''. */
  readonly prefix: string;
  matches(path: string): boolean;
}

/** Steps of the program. Character steps take one character and go on with the next step. */
type Step =
  | { readonly op: 'character'; readonly code: number }
  | { readonly op: 'any' } // but "/"
  | { readonly op: 'all' }
  | {
      readonly op: 'set';
      readonly ranges: ReadonlyArray<readonly [from: number, to: number]>;
      readonly negated: boolean;
    }
  | { op: 'fork'; first: number; second: number }
  | { op: 'jump'; to: number };

const SLASH = 0x2f;
const SPECIAL = /[*?[\]{}\\]/g;

/** `text` as a glob that matches just it. */
export function escapeGlob(text: string): string {
  return text.replace(SPECIAL, '\\$&');
}

/** Compiles a glob. Throws FetchError BAD_URL when it is longer or nested deeper than anybody means. */
export function parseGlob(pattern: string): Glob {
  if (pattern.length > LOCATION_CHARACTERS_MAX) {
    throw new FetchError('BAD_URL', `the pattern has more than ${LOCATION_CHARACTERS_MAX} characters`);
  }
  const compiler = new Compiler(pattern);
  compiler.sequence(0);
  const { steps, lead, wild } = compiler;
  const prefix = parentOf(lead);
  if (!wild) return { pattern, literal: lead, verbatim: lead, lead, prefix, matches: (path) => path === lead };
  const verbatim = pattern.replace(/\\(.)/gs, '$1');
  return {
    pattern,
    literal: undefined,
    verbatim,
    lead,
    prefix,
    matches: (path) => path.startsWith(lead) && run(steps, path),
  };
}

/** The path up to and with its last "/". */
function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/') + 1);
}

class Compiler {
  readonly steps: Step[] = [];
  /** Characters before the first wildcard. */
  lead = '';
  wild = false;
  readonly #characters: string[];
  #at = 0;

  constructor(pattern: string) {
    this.#characters = [...pattern];
  }

  /** Up to the end, or inside braces up to "," or "}". */
  sequence(nesting: number): void {
    const characters = this.#characters;
    while (this.#at < characters.length) {
      const c = characters[this.#at]!;
      if (nesting > 0 && (c === ',' || c === '}')) return;
      if (c === '*') this.#star(nesting > 0);
      else if (c === '?') {
        this.#at++;
        this.#emitWild({ op: 'any' });
      } else if (c === '[' && this.#set()) continue;
      else if (c === '{' && this.#braces(nesting)) continue;
      else {
        if (c === '\\' && this.#at + 1 < characters.length) this.#at++;
        this.#literal(characters[this.#at++]!);
      }
    }
  }

  #literal(character: string): void {
    this.steps.push({ op: 'character', code: character.codePointAt(0)! });
    if (!this.wild) this.lead += character;
  }

  #emitWild(step: Step): void {
    this.wild = true;
    this.steps.push(step);
  }

  #star(inBraces: boolean): void {
    const characters = this.#characters;
    const before = characters[this.#at - 1];
    let end = this.#at;
    while (characters[end] === '*') end++;
    const alone =
      end - this.#at === 2 &&
      [before, characters[end]].every((c) => c === undefined || c === '/' || (inBraces && '{,}'.includes(c)));
    this.#at = end;
    if (!alone || characters[end] !== '/') {
      this.#loop(alone ? 'all' : 'any');
      return;
    }
    // "**/": nothing, or anything that ends with a "/".
    this.#at++;
    const fork = { op: 'fork' as const, first: 0, second: 0 };
    this.#emitWild(fork);
    fork.first = this.steps.length;
    this.#loop('all');
    this.#literal('/');
    fork.second = this.steps.length;
  }

  #loop(op: 'any' | 'all'): void {
    const start = this.steps.length;
    const fork = { op: 'fork' as const, first: start + 1, second: start + 3 };
    this.#emitWild(fork);
    this.steps.push({ op }, { op: 'jump', to: start });
  }

  /** A set in brackets; false, and nothing is taken, when it does not end. */
  #set(): boolean {
    const characters = this.#characters;
    let at = this.#at + 1;
    const negated = characters[at] === '!' || characters[at] === '^';
    if (negated) at++;
    const ranges: [number, number][] = [];
    for (let first = true; ; first = false) {
      if (characters[at] === undefined) return false;
      if (characters[at] === ']' && !first) break;
      const from = this.#inSet(at);
      at = from.next;
      if (characters[at] === '-' && characters[at + 1] !== undefined && characters[at + 1] !== ']') {
        const to = this.#inSet(at + 1);
        at = to.next;
        ranges.push([from.code, to.code]);
      } else ranges.push([from.code, from.code]);
    }
    this.#at = at + 1;
    this.#emitWild({ op: 'set', ranges, negated });
    return true;
  }

  #inSet(at: number): { code: number; next: number } {
    const escaped = this.#characters[at] === '\\' && this.#characters[at + 1] !== undefined;
    const place = escaped ? at + 1 : at;
    return { code: this.#characters[place]!.codePointAt(0)!, next: place + 1 };
  }

  /** Alternatives in braces; false, and nothing is taken, when they do not end or there is only one. */
  #braces(nesting: number): boolean {
    if (!this.#bracesEnd()) return false;
    if (nesting >= GLOB_NESTING_MAX) throw new FetchError('BAD_URL', 'the pattern has too many nested braces');
    this.wild = true;
    const jumps: { op: 'jump'; to: number }[] = [];
    for (;;) {
      this.#at++;
      const fork = { op: 'fork' as const, first: this.steps.length + 1, second: 0 };
      this.steps.push(fork);
      this.sequence(nesting + 1);
      const last = this.#characters[this.#at] === '}';
      if (last) fork.second = fork.first;
      else {
        const jump = { op: 'jump' as const, to: 0 };
        jumps.push(jump);
        this.steps.push(jump);
        fork.second = this.steps.length;
        continue;
      }
      this.#at++;
      for (const jump of jumps) jump.to = this.steps.length;
      return true;
    }
  }

  #bracesEnd(): boolean {
    let depth = 0;
    let alternatives = false;
    for (let at = this.#at; at < this.#characters.length; at++) {
      const c = this.#characters[at];
      if (c === '\\') at++;
      else if (c === '{') depth++;
      else if (c === ',' && depth === 1) alternatives = true;
      else if (c === '}' && --depth === 0) return alternatives;
    }
    return false;
  }
}

/** Runs the program over the whole path, all states at a time. */
function run(steps: readonly Step[], path: string): boolean {
  // The character at which a step was last entered: each is entered once per character.
  const entered = new Int32Array(steps.length + 1).fill(-1);
  const pending: number[] = [];
  let states: number[] = [];
  const enter = (step: number, at: number, into: number[]) => {
    pending.push(step);
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      if (entered[next] === at) continue;
      entered[next] = at;
      const one = steps[next];
      if (one?.op === 'jump') pending.push(one.to);
      else if (one?.op === 'fork') pending.push(one.second, one.first);
      else into.push(next);
    }
  };
  enter(0, 0, states);
  let at = 0;
  for (const character of path) {
    at++;
    const code = character.codePointAt(0)!;
    const next: number[] = [];
    for (const state of states) {
      const step = steps[state];
      if (step !== undefined && takes(step, code)) enter(state + 1, at, next);
    }
    if (next.length === 0) return false;
    states = next;
  }
  return states.includes(steps.length);
}

function takes(step: Step, code: number): boolean {
  switch (step.op) {
    case 'character':
      return step.code === code;
    case 'any':
      return code !== SLASH;
    case 'all':
      return true;
    case 'set':
      return code !== SLASH && step.ranges.some(([from, to]) => code >= from && code <= to) !== step.negated;
    default:
      return false;
  }
}
