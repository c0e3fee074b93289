/**
 * The Range header, as far as it is served: one range of bytes. Pure. Several ranges, other units and what makes no
 * sense are answered with the whole, which HTTP allows; what lies behind the end can't be answered.
 */

export type AskedRange =
  | { readonly kind: 'whole' }
  | { readonly kind: 'part'; readonly start: number; readonly end: number }
  | { readonly kind: 'unsatisfiable' };

const WHOLE: AskedRange = { kind: 'whole' };
const UNSATISFIABLE: AskedRange = { kind: 'unsatisfiable' };

/** What a header asks for of `length` bytes; `end` is exclusive. Never throws. */
export function parseRange(header: string | undefined, length: number): AskedRange {
  if (header === undefined) return WHOLE;
  const [, first, last] = /^[ \t]*bytes[ \t]*=[ \t]*(\d{0,20})[ \t]*-[ \t]*(\d{0,20})[ \t]*$/i.exec(header) ?? [];
  if (first === undefined || last === undefined) return WHOLE;
  if (first === '') {
    if (last === '') return WHOLE;
    const suffix = Number(last);
    if (suffix === 0) return UNSATISFIABLE;
    // No Content-Range can say "nothing": the last bytes of an empty file are all of it.
    return length === 0 ? WHOLE : { kind: 'part', start: Math.max(0, length - suffix), end: length };
  }
  const start = Number(first);
  const end = last === '' ? length : Math.min(length, Number(last) + 1);
  if (last !== '' && Number(last) < start) return WHOLE;
  return start >= length ? UNSATISFIABLE : { kind: 'part', start, end };
}
