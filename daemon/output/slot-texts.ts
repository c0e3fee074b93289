/**
 * The texts of a field's values in a batch, one for each slot: JSON-like, whatever lies inside. What a leaf's value
 * and a map's pair look like belongs to the form; groups, lists and nulls look the same in all.
 */
import type { Field, LeafField, Pool } from '../../decode/index.ts';
import { elementsOf, rangeOf, type SlotRange, type SlotRanges, validityOf } from '../scan/slots.ts';

export interface TextForm {
  /** Makes the text of a leaf's slot that is not null. */
  leaf(field: LeafField, range: SlotRange): (slot: number) => string;
  /** A map's pair; `value` is undefined in a map without values. */
  pair(key: string, value: string | undefined): string;
}

/** Throws METADATA when leaves of a list do not agree on its elements. */
export function slotTexts(pool: Pool, field: Field, ranges: SlotRanges, form: TextForm): string[] {
  const { segment, start, count } = rangeOf(field, ranges);
  if (field.kind === 'leaf') {
    const text = form.leaf(field, { segment, start, count });
    return texts(pool, segment.validity, start, count, (k) => text(start + k));
  }
  const validity = validityOf(field, ranges);
  if (field.kind === 'struct') {
    const children = field.children.map((child) => slotTexts(pool, child, ranges, form));
    const names = field.children.map((child, k) => `${k === 0 ? '' : ','}${JSON.stringify(child.name)}:`);
    return texts(pool, validity, start, count, (k) => {
      let out = '{';
      for (const [c, name] of names.entries()) out += name + children[c]![k]!;
      return `${out}}`;
    });
  }
  const { offsets, ranges: inner } = elementsOf(pool, field, ranges);
  const elements =
    field.kind === 'list' ? slotTexts(pool, field.element, inner, form) : pairs(pool, field, inner, form);
  return texts(pool, validity, start, count, (k) => `[${elements.slice(offsets[k]!, offsets[k + 1]!).join(',')}]`);
}

function pairs(pool: Pool, field: Field & { kind: 'map' }, ranges: SlotRanges, form: TextForm): string[] {
  const keys = slotTexts(pool, field.key, ranges, form);
  const values = field.value === undefined ? undefined : slotTexts(pool, field.value, ranges, form);
  return keys.map((key, k) => form.pair(key, values?.[k]));
}

function texts({ u8 }: Pool, validity: number, start: number, count: number, text: (k: number) => string): string[] {
  const out = new Array<string>(count);
  for (let k = 0; k < count; k++) {
    const slot = start + k;
    const isNull = validity !== 0 && ((u8[validity + (slot >>> 3)]! >>> (slot & 7)) & 1) === 0;
    out[k] = isNull ? 'null' : text(k);
  }
  return out;
}
