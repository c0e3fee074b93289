/** Wide tables: what is read of their footers is right, and what is not read is not made. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DecodeError } from '../errors.ts';
import { buildFields } from '../format/field-tree.ts';
import { lazyList } from '../format/lazy-list.ts';
import { EAGER_ITEMS_MAX } from '../format/limits.ts';
import type { FileMetadata, SchemaElement, SchemaNode } from '../format/metadata.ts';
import { parseFooter } from '../format/parse-footer.ts';
import { assertSameAsTwin, elementTree, footerBytes, plainFooter } from './footer-model.ts';
import { seededRandom } from './random.ts';
import type { Tree } from './thrift-twin.ts';

const WIDE = 1000;

function parse(footer: Tree): FileMetadata {
  const bytes = footerBytes(footer);
  return parseFooter(bytes, 4 + 1000 + bytes.length + 8);
}

test('a lazy list is an array whose items are made once, when they are read', () => {
  const made: number[] = [];
  const list = lazyList(WIDE, (index) => {
    made.push(index);
    return { index };
  });
  assert.equal(list.length, WIDE);
  assert.deepEqual(made, []);
  assert.equal(list[7], list[7]);
  assert.equal(list.at(-1)!.index, WIDE - 1);
  assert.deepEqual(made, [7, WIDE - 1]);
  assert.equal(list[WIDE], undefined);
  for (const name of ['-1', '1.5', '01', '', ' 1', '1e1', 'index']) {
    assert.equal((list as unknown as Record<string, unknown>)[name], undefined, name);
  }
  assert.deepEqual(made, [7, WIDE - 1]);
  const plain = Array.from({ length: WIDE }, (_, index) => ({ index }));
  assert.ok(Array.isArray(list));
  assert.deepEqual(list, plain);
  assert.deepEqual([...list], plain);
  assert.deepEqual(
    list.map(({ index }) => index),
    plain.map(({ index }) => index),
  );
  assert.deepEqual(list.slice(5, 9), plain.slice(5, 9));
  assert.equal(JSON.stringify(list), JSON.stringify(plain));
  assert.equal(
    list.reduce((sum, { index }) => sum + index, 0),
    (WIDE * (WIDE - 1)) / 2,
  );
  assert.equal(made.length, WIDE);
  assert.throws(() => (list as { index: number }[]).push({ index: 0 }), TypeError);
  assert.throws(() => (list as { index: number }[]).sort(), TypeError);
});

test('a short list is a plain array', () => {
  let made = 0;
  const list = lazyList(EAGER_ITEMS_MAX, () => made++);
  assert.equal(made, EAGER_ITEMS_MAX);
  assert.deepEqual(structuredClone(list), [...Array(EAGER_ITEMS_MAX).keys()]);
});

test('a wide footer reads as the twin reads it, in any order', () => {
  const footer = plainFooter(WIDE, 3);
  const bytes = footerBytes(footer);
  const metadata = parseFooter(bytes, 4 + 1000 + bytes.length + 8);
  const [, group] = metadata.rowGroups;
  assert.equal(group!.columns[700]!.column, 700);
  assert.equal(metadata.leaves[700]!.name, 'c700');
  assert.equal(metadata.root.children[700]!.leaf, metadata.leaves[700]);
  assert.deepEqual(
    metadata.root.named!('c12').map((node) => node.leaf),
    [metadata.leaves[12]],
  );
  assert.deepEqual(metadata.root.named!('c1000'), []);
  assertSameAsTwin(metadata, bytes);
  assert.equal(group!.totalCompressedSize, 20 * WIDE);
  assert.equal(metadata.leaves.length, WIDE);
});

test('a chunk that is no valid Thrift struct is the only one that fails', () => {
  const footer = plainFooter(WIDE, 2);
  const chunks = (footer.row_groups as Tree[])[1]!.columns as Tree[];
  chunks[500] = { ...chunks[500]!, meta_data: { ...(chunks[500]!.meta_data as Tree), codec: 'a string' } };
  const bytes = writeWithTextCodec(footer);
  const metadata = parseFooter(bytes, 4 + 1000 + bytes.length + 8);
  const broken = metadata.rowGroups.map((group) => group.columns.flatMap((chunk) => chunk.broken ?? []));
  assert.equal(broken[0]!.length, 0);
  assert.equal(broken[1]!.length, 1);
  assert.match(broken[1]![0]!, /^field 4 is binary, not i32 at offset \d+$/);
  assert.deepEqual(metadata.rowGroups[1]!.columns[500]!.bytes, { start: 0, end: 0 });
});

/** The writer's tables say what a codec is: a chunk's codec field is turned into a string of the same bytes. */
function writeWithTextCodec(footer: Tree): Uint8Array {
  const chunks = (footer.row_groups as Tree[])[1]!.columns as Tree[];
  const meta = chunks[500]!.meta_data as Tree;
  const mark = 'path-to-be-found';
  chunks[500] = { ...chunks[500]!, meta_data: { ...meta, codec: 1, path_in_schema: [mark] } };
  const bytes = Buffer.from(footerBytes(footer));
  // after the path comes the field header of the codec: delta 1, i32 (5); as binary (8) of length 2 it takes the next two bytes
  const at = bytes.indexOf(mark) + mark.length;
  assert.deepEqual([bytes[at], bytes[at + 1]], [0x15, 2]);
  bytes[at] = 0x18;
  return Uint8Array.from(bytes);
}

test('structs and lists of any shape: ranges, names and fields agree with the leaves', () => {
  const random = seededRandom();
  for (let round = 0; round < 50; round++) {
    const elements: SchemaElement[] = [{ name: 'root', numChildren: 0 }];
    const grow = (depth: number): number => {
      const count = random.below(depth === 0 ? 100 : 5) + (depth === 0 ? 40 : 0);
      for (let k = 0; k < count; k++) {
        const name = `n${random.below(8)}${random.below(10) === 0 ? '.x' : ''}`;
        const repetition = random.below(3) as 0 | 1 | 2;
        if (depth < 4 && random.below(3) === 0) {
          const at = elements.push({ name, repetition }) - 1;
          elements[at] = { name, repetition, numChildren: grow(depth + 1) };
        } else elements.push({ name, type: 2, repetition });
      }
      return count;
    };
    elements[0] = { name: 'root', numChildren: grow(0) };
    const metadata = parse({ version: 1, schema: elements.map(elementTree), num_rows: 0n, row_groups: [] });
    checkNode(metadata, metadata.root, { start: 0, end: metadata.leaves.length });
    const chosen = metadata.leaves.filter(() => random.below(5) === 0);
    const fields = buildFields(metadata.root, chosen);
    assert.deepEqual(
      fields.flatMap((field) => field.leaves.map((leaf) => leaf.index)),
      chosen.map((leaf) => leaf.index),
    );
  }
});

function checkNode(metadata: FileMetadata, node: SchemaNode, range: { start: number; end: number }): void {
  assert.deepEqual(node.leafRange, range);
  if (node.leaf !== undefined) {
    assert.equal(node.leaf, metadata.leaves[range.start]);
    assert.deepEqual(node.leaf.path, node.path);
    return;
  }
  let { start } = range;
  for (const child of node.children) {
    assert.deepEqual(child.path.slice(0, -1), node.path);
    assert.equal(child.leafRange.start, start);
    start = child.leafRange.end;
    checkNode(metadata, child, { ...child.leafRange });
    if (node.named === undefined) continue;
    const same = node.children.filter((other) => other.name === child.name);
    assert.deepEqual(node.named(child.name), same);
  }
  assert.equal(start, range.end);
}

test('names with characters outside ASCII and bytes that are not UTF-8 are found as they read', () => {
  const names = ['ünïcödé', '漢字', '🎈', 'a/b', 'a.b', '', 'long '.repeat(20), `${'é'.repeat(30)}`];
  const filler = Array.from({ length: 100 }, (_, k) => `c${k}`);
  const all = [...names, ...filler];
  const schema = [
    { name: 'r', num_children: all.length },
    ...all.map((name) => ({ name, type: 2, repetition_type: 0 })),
  ];
  const bytes = Buffer.from(footerBytes({ version: 1, schema, num_rows: 0n, row_groups: [] }));
  bytes[bytes.indexOf('ünïcödé')] = 0xff;
  const metadata = parseFooter(Uint8Array.from(bytes), bytes.length + 12);
  for (const [k, name] of names.slice(1).entries()) {
    assert.deepEqual(
      metadata.root.named!(name).map((node) => node.leaf!.index),
      [k + 1],
      name,
    );
  }
  const [first] = metadata.leaves;
  assert.match(first!.name, /\ufffd/);
  assert.deepEqual(metadata.root.named!(first!.name), [metadata.root.children[0]]);
});

test('a second schema is refused', () => {
  const bytes = footerBytes(plainFooter(2, 1));
  const schema = footerBytes({ schema: plainFooter(1, 0).schema! });
  // field 2 once more, with its id written out, before the end of the struct
  const twice = Buffer.concat([bytes.subarray(0, -1), Buffer.of(0x09, 4), schema.subarray(1)]);
  assert.throws(
    () => parseFooter(Uint8Array.from(twice), 4 + 1000 + twice.length + 8),
    (error) => error instanceof DecodeError && error.code === 'THRIFT' && /a second schema/.test(error.message),
  );
});
