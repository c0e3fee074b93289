/**
 * Changed files. Each is a base with one or two changes: to fields of the footer or of a page header, to levels, run
 * headers, indices and lengths below a page's compression, to the order of pages, or to any bytes. Everything comes
 * from the random numbers that are handed in, so that a mutant is made again from its seed and number.
 */
import { changeHeader, damage, EDGES } from '../decode/tests/damage.ts';
import { pick } from '../decode/tests/nested-cases.ts';
import type { SeededRandom } from '../decode/tests/random.ts';
import type { Tree, Value } from '../decode/tests/thrift-twin.ts';
import { join } from '../decode/tests/writer/index.ts';
import type { Base, Bases } from './fuzz-bases.ts';
import {
  cloneTree,
  closePage,
  type Dissected,
  dissect,
  footerBytes,
  headerBytes,
  openPage,
  type Page,
  type PageParts,
  type Span,
  spansOf,
  splice,
  withFooter,
} from './fuzz-dissect.ts';

export interface Mutant {
  readonly bytes: Uint8Array;
  readonly base: Base;
  /** What was changed, for people. */
  readonly changes: readonly string[];
}

type Change = (random: SeededRandom, file: Dissected) => Uint8Array;

const dissected = new WeakMap<Base, { readonly file: Dissected | undefined }>();

export function makeMutant(random: SeededRandom, bases: Bases): Mutant {
  const base = bases.pick(random);
  let known = dissected.get(base);
  if (known === undefined) {
    known = { file: dissect(base.bytes) };
    dissected.set(base, known);
  }
  const changes: string[] = [];
  let bytes = base.bytes;
  for (let left = random.below(5) === 0 ? 2 : 1; left > 0; left--) {
    const file = bytes === base.bytes ? known.file : dissect(bytes);
    const [name, change] = pick(random, file === undefined ? ANY : KINDS);
    changes.push(name);
    bytes = change(random, file ?? { bytes, footerStart: 0, footer: {}, pages: [] });
  }
  return { bytes, base, changes };
}

/** Of a file that is as it was: how it is scanned must make no difference. */
export const UNCHANGED = 'nothing';

/** How often in so many changes; most of what damages a file's frame is found at once, what lies in pages is not. */
const KINDS: readonly (readonly [name: string, change: Change])[] = weighted([
  [1, 'bytes', (random, { bytes }) => damage(random, bytes)],
  [2, 'bytes of pages', damagePages],
  [1, 'bytes of the footer', (random, file) => withFooter(file, damage(random, ownFooter(file)))],
  [4, 'fields of the footer', changeFooter],
  [4, 'page header', changePageHeader],
  [7, 'page content', changeContent],
  [7, 'levels', changeLevels],
  [3, 'order of pages', changeOrder],
  [1, 'tail', changeTail],
  [1, UNCHANGED, (_, { bytes }) => bytes],
]);
const ANY = KINDS.slice(0, 1);

function weighted(kinds: readonly (readonly [times: number, name: string, change: Change])[]) {
  return kinds.flatMap(([times, name, change]) => Array.from({ length: times }, () => [name, change] as const));
}

const ownFooter = ({ bytes, footerStart }: Dissected): Uint8Array => bytes.subarray(footerStart, bytes.length - 8);

function damagePages(random: SeededRandom, file: Dissected): Uint8Array {
  const { bytes, footerStart } = file;
  const changed = damage(random, bytes.subarray(4, footerStart));
  // of the same length, so that the footer still tells where things are
  const same = new Uint8Array(footerStart - 4);
  same.set(changed.subarray(0, same.length));
  return join([bytes.subarray(0, 4), same, bytes.subarray(footerStart)]);
}

function changeTail(random: SeededRandom, file: Dissected): Uint8Array {
  const footer = ownFooter(file);
  switch (random.below(4)) {
    case 0:
      return withFooter(file, footer, pick(random, EDGES));
    case 1:
      return withFooter(file, footer, Math.max(0, footer.length + random.below(9) - 4));
    case 2:
      return file.bytes.subarray(0, random.below(file.bytes.length + 1));
    default: {
      const bytes = Uint8Array.from(file.bytes);
      bytes[random.below(2) === 0 ? random.below(4) : bytes.length - 1 - random.below(8)]! ^= 1 + random.below(255);
      return bytes;
    }
  }
}

const LONG_EDGES = [0n, 1n, -1n, 4n, 2n ** 31n, 2n ** 32n, 2n ** 53n, 2n ** 62n, 2n ** 63n - 1n, -(2n ** 63n)];
const NAMES = ['', 'a', '__proto__', 'ß'.repeat(300), 'a.b', '\0', 'list', 'element', 'array', 'key_value'];

/** A place in a tree where a value stands. */
interface Slot {
  readonly holder: Tree | Value[];
  readonly key: string | number;
  readonly value: Value;
}

function changeFooter(random: SeededRandom, file: Dissected): Uint8Array {
  const footer = cloneTree(file.footer);
  for (let left = 1 + random.below(2); left > 0; left--) {
    const slots: Slot[] = [];
    collect(footer, slots);
    if (slots.length > 0) changeSlot(random, pick(random, slots), file);
  }
  return withFooter(file, footerBytes(footer));
}

function collect(holder: Tree | Value[], into: Slot[]): void {
  for (const [key, value] of Object.entries(holder)) {
    into.push({ holder, key: Array.isArray(holder) ? Number(key) : key, value });
    if (typeof value === 'object' && !(value instanceof Uint8Array)) collect(value as Tree | Value[], into);
  }
}

function changeSlot(random: SeededRandom, { holder, key, value }: Slot, file: Dissected): void {
  const set = (made: Value): void => {
    (holder as Record<string | number, Value>)[key] = made;
  };
  if (random.below(8) === 0) {
    if (Array.isArray(holder)) holder.splice(Number(key), 1);
    else delete holder[key];
  } else if (typeof value === 'boolean') set(!value);
  else if (typeof value === 'number') set(changedNumber(random, value));
  else if (typeof value === 'bigint') set(changedLong(random, value, file));
  else if (typeof value === 'string') set(random.below(2) === 0 ? pick(random, NAMES) : `${value}x`);
  else if (value instanceof Uint8Array) set(damage(random, value));
  else if (Array.isArray(value)) changeList(random, value);
  else {
    const names = Object.keys(value);
    if (names.length > 0) delete value[pick(random, names)];
  }
}

function changedNumber(random: SeededRandom, value: number): number {
  const choice = random.below(3);
  if (choice === 0) return pick(random, EDGES);
  return choice === 1 ? random.below(24) : Math.max(-(2 ** 31), Math.min(2 ** 31 - 1, value + random.below(9) - 4));
}

function changedLong(random: SeededRandom, value: bigint, { bytes, footerStart }: Dissected): bigint {
  switch (random.below(4)) {
    case 0:
      return pick(random, LONG_EDGES);
    case 1:
      return BigInt(pick(random, [bytes.length, footerStart, footerStart - 1, random.below(bytes.length + 1)]));
    case 2:
      return BigInt(pick(random, EDGES));
    default:
      return BigInt.asIntN(64, value + BigInt(random.below(9) - 4));
  }
}

function changeList(random: SeededRandom, list: Value[]): void {
  if (list.length === 0) return;
  const [a, b] = [random.below(list.length), random.below(list.length)];
  switch (random.below(5)) {
    case 0:
      list.splice(a, 1);
      break;
    case 1:
      for (let left = 1 + random.below(random.below(6) === 0 ? 60 : 2); left > 0; left--) {
        list.splice(b, 0, cloneTree(list[a]!));
      }
      break;
    case 2:
      [list[a], list[b]] = [list[b]!, list[a]!];
      break;
    case 3:
      list.length = a;
      break;
    default:
      list[b] = cloneTree(list[a]!);
  }
}

/** Without pages there is no header to change: any bytes then. */
function onPage(change: (random: SeededRandom, file: Dissected, page: Page) => Uint8Array): Change {
  return (random, file) =>
    file.pages.length === 0 ? damage(random, file.bytes) : change(random, file, pick(random, file.pages));
}

function changePageHeader(random: SeededRandom, file: Dissected): Uint8Array {
  return onPage((_, __, page) => {
    const header = cloneTree(page.header);
    for (let left = 1 + random.below(2); left > 0; left--) changeHeader(random, header);
    let made = headerBytes(header);
    if (random.below(6) === 0) made = damage(random, made);
    return splice(file, page, [page.start, page.body], made);
  })(random, file);
}

/** Levels or values of a page below its compression; the lengths around them stay right, mostly. */
function changeContent(random: SeededRandom, file: Dissected): Uint8Array {
  return onPage((_, __, page) =>
    rewrite(random, file, page, (parts) => {
      if (random.below(4) === 0) return { ...parts, plain: damageStart(random, parts.plain) };
      return { ...parts, plain: changeWithin(random, parts.plain, spansOf(page, parts).values) };
    }),
  )(random, file);
}

function changeLevels(random: SeededRandom, file: Dissected): Uint8Array {
  const pages = file.pages.filter(({ repeats, isDefined }) => repeats || isDefined);
  if (pages.length === 0) return changeContent(random, file);
  const page = pick(random, pages);
  return rewrite(random, file, page, (parts) => {
    const { levels } = spansOf(page, parts);
    if (levels.length === 0) return { ...parts, plain: damageStart(random, parts.plain) };
    const span = pick(random, levels);
    if (parts.levels.length > 0) return { ...parts, levels: changeWithin(random, parts.levels, span) };
    return { ...parts, plain: changeWithin(random, parts.plain, span) };
  });
}

function rewrite(
  random: SeededRandom,
  file: Dissected,
  page: Page,
  change: (parts: PageParts) => PageParts,
): Uint8Array {
  const crc = random.below(8) > 0;
  const parts = openPage(file, page);
  if (parts !== undefined) return splice(file, page, [page.start, page.end], closePage(page, change(parts), crc));
  const body = damage(random, file.bytes.subarray(page.body, page.end));
  const raw = { levels: body, plain: new Uint8Array(0), isCompressed: false };
  return splice(file, page, [page.start, page.end], closePage(page, raw, crc));
}

/** A few bytes or bits of a span, or a piece of it over another; nothing moves. */
function changeWithin(random: SeededRandom, bytes: Uint8Array, [start, end]: Span): Uint8Array {
  const changed = Uint8Array.from(bytes);
  if (end <= start) return changed;
  for (let left = 1 + random.below(3); left > 0; left--) {
    const at = start + random.below(random.below(2) === 0 ? Math.min(end - start, 8) : end - start);
    const what = random.below(6);
    if (what === 0) changed[at] = pick(random, [0, 1, 2, 3, 31, 32, 33, 64, 65, 127, 128, 129, 254, 255]);
    else if (what === 1) changed[at] = random.below(256);
    else if (what === 2 && at + 4 <= end) new DataView(changed.buffer).setInt32(at, pick(random, EDGES), true);
    else if (what === 3) changed.copyWithin(at, start + random.below(end - start), end);
    else changed[at]! ^= 1 << random.below(8);
  }
  return changed.subarray(0, bytes.length);
}

/** Lengths, widths and run headers stand at the start of things: more often there. */
function damageStart(random: SeededRandom, bytes: Uint8Array): Uint8Array {
  if (random.below(2) === 0 || bytes.length < 4) return damage(random, bytes);
  const changed = Buffer.from(bytes);
  const at = random.below(Math.min(changed.length - 3, 48));
  if (random.below(2) === 0) changed.writeInt32LE(pick(random, EDGES), at);
  else changed[at] = pick(random, [0, 1, 2, 3, 31, 32, 33, 64, 65, 127, 128, 129, 254, 255]);
  return Uint8Array.from(changed);
}

/** Pages of a chunk swapped, doubled, left out, or taken from another chunk. */
function changeOrder(random: SeededRandom, file: Dissected): Uint8Array {
  return onPage((_, __, page) => {
    const bytesOf = ({ start, end }: Page): Uint8Array => file.bytes.subarray(start, end);
    const range = [page.start, page.end] as const;
    switch (random.below(4)) {
      case 0:
        return splice(file, page, range, new Uint8Array(0));
      case 1:
        return splice(file, page, range, join([bytesOf(page), bytesOf(page)]));
      case 2:
        return splice(file, page, range, bytesOf(pick(random, file.pages)));
      default: {
        const next = file.pages.find(({ start }) => start === page.end);
        if (next === undefined) return splice(file, page, range, new Uint8Array(0));
        return splice(file, page, [page.start, next.end], join([bytesOf(next), bytesOf(page)]));
      }
    }
  })(random, file);
}
