/**
 * Text of files and peers made safe to show: a terminal must not take names or values for commands, and a line must
 * stay one. Not for data that goes to a file or a pipe in a format of its own.
 */

/** Controls (C0, DEL, C1), line and paragraph separators, and marks that reorder the text around them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it is about
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/g;

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

export function printable(text: string): string {
  return text.replace(UNSAFE, (c) => SHORT[c] ?? `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Columns that a character takes on a terminal: none for combining marks, two for East Asian wide and emoji. */
function columnsOf(code: number): number {
  if (code < 0x300) return 1;
  if ((code < 0x370 && code >= 0x300) || code === 0x200b || code === 0x200d || (code >= 0xfe00 && code <= 0xfe0f)) {
    return 0;
  }
  const wide =
    (code >= 0x1100 && code <= 0x115f) ||
    (code >= 0x2e80 && code <= 0xa4cf) ||
    (code >= 0xac00 && code <= 0xd7a3) ||
    (code >= 0xf900 && code <= 0xfaff) ||
    (code >= 0xfe30 && code <= 0xfe6f) ||
    (code >= 0xff00 && code <= 0xff60) ||
    (code >= 0x1f300 && code <= 0x1faff) ||
    (code >= 0x20000 && code <= 0x3fffd);
  return wide ? 2 : 1;
}

/** Columns that a text takes. */
export function textWidth(text: string): number {
  let width = 0;
  for (const character of text) width += columnsOf(character.codePointAt(0)!);
  return width;
}

/** The text in at most `width` columns, with "…" for what was cut. */
export function cutText(text: string, width: number): string {
  if (text.length <= width && textWidth(text) <= width) return text;
  let out = '';
  let used = 0;
  for (const character of text) {
    const columns = columnsOf(character.codePointAt(0)!);
    if (used + columns > width - 1) return textWidth(text) <= width ? text : `${out}…`;
    out += character;
    used += columns;
  }
  return out;
}

/** The text filled up with spaces to `width` columns. */
export function padText(text: string, width: number, right: boolean): string {
  const fill = ' '.repeat(Math.max(0, width - textWidth(text)));
  return right ? fill + text : text + fill;
}

/**
 * Rows of texts as aligned columns, two spaces apart; the columns in `right` are set flush right. Lines are cut to
 * `width` columns.
 */
export function alignRows(
  rows: ReadonlyArray<readonly string[]>,
  right: ReadonlySet<number> = new Set(),
  width = Number.POSITIVE_INFINITY,
): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [k, cell] of row.entries()) widths[k] = Math.max(widths[k] ?? 0, textWidth(cell));
  }
  const lines = rows.map((row) => row.map((cell, k) => padText(cell, widths[k]!, right.has(k))).join('  '));
  return lines.map((line) => `${cutText(line.trimEnd(), width)}\n`).join('');
}
