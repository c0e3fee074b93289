/** Footers and page headers of a collection of real files against what other readers found in them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DecodeError } from '../errors.ts';
import { Codec, Encoding, nameOf, PageType, Physical } from '../format/enums.ts';
import type { ColumnChunk, FileMetadata } from '../format/metadata.ts';
import { parsePageHeader } from '../format/page-header.ts';
import { parseFooter, parseTail } from '../format/parse-footer.ts';
import type { CorpusEntry } from './corpus.ts';
import { corpusAbsent, corpusEntries, corpusFile } from './corpus.ts';
import { assertSameAsTwin } from './footer-model.ts';

function open(file: Uint8Array): { metadata: FileMetadata; footer: Uint8Array } {
  const { footerStart, footerLength } = parseTail(file, file.length);
  const footer = file.subarray(footerStart, footerStart + footerLength);
  return { metadata: parseFooter(footer, file.length), footer };
}

function chunksOf(metadata: FileMetadata): ColumnChunk[] {
  return metadata.rowGroups.flatMap((group) => [...group.columns]);
}

function names(table: Readonly<Record<string, number>>, values: Iterable<number>): string {
  return [...new Set([...values].map((value) => nameOf(table, value)))].sort().join(',') || '-';
}

/** Walks the pages of a chunk by their headers alone. */
function countPages(file: Uint8Array, chunk: ColumnChunk): { dictionary: number; v1: number; v2: number } {
  const pages = { dictionary: 0, v1: 0, v2: 0 };
  let at = chunk.bytes.start;
  for (let values = 0; values < chunk.numValues; ) {
    const header = parsePageHeader(file, at, chunk.bytes.end);
    if (header === undefined) throw new DecodeError('PAGE_HEADER', 'the chunk ends inside a page header');
    at += header.headerBytes + header.compressedSize;
    if (at > chunk.bytes.end) throw new DecodeError('PAGE_HEADER', 'the page is larger than its chunk');
    if (header.type === PageType.DICTIONARY_PAGE) pages.dictionary++;
    else values += header.numValues;
    if (header.type === PageType.DATA_PAGE) pages.v1++;
    if (header.type === PageType.DATA_PAGE_V2) pages.v2++;
    if (values > chunk.numValues) throw new DecodeError('PAGE_HEADER', 'more values than the chunk has');
  }
  return pages;
}

function assertAsListed(file: Uint8Array, entry: CorpusEntry): void {
  const { metadata, footer } = open(file);
  const chunks = chunksOf(metadata);
  const path = entry.source_path;
  assert.deepEqual(
    chunks.filter((chunk) => chunk.broken).map((chunk) => chunk.broken),
    [],
    path,
  );
  assert.equal(String(metadata.numRows), entry.true_rows, path);
  assert.equal(String(metadata.leaves.length), entry.leaf_columns, path);
  assert.equal(String(metadata.root.children.length), entry.top_columns, path);
  assert.equal(String(metadata.rowGroups.length), entry.row_groups, path);
  assert.equal(names(Codec, new Set(chunks.map((chunk) => chunk.codec))), entry.codecs, path);
  assert.equal(names(Encoding, new Set(chunks.flatMap((chunk) => [...chunk.encodings]))), entry.chunk_encodings, path);
  assert.equal(names(Physical, new Set(metadata.leaves.map((leaf) => leaf.type))), entry.physical, path);
  const pages = { dictionary: 0, v1: 0, v2: 0 };
  for (const chunk of chunks) {
    const more = countPages(file, chunk);
    pages.dictionary += more.dictionary;
    pages.v1 += more.v1;
    pages.v2 += more.v2;
  }
  // The inventory stopped counting at 20,000 pages.
  const listed = { dictionary: Number(entry.dict_pages), v1: Number(entry.v1_pages), v2: Number(entry.v2_pages) };
  if (listed.v1 < 20_000) assert.deepEqual(pages, listed, path);
  assertSameAsTwin(metadata, footer);
}

test('good files read as they are listed, and as the twin reads them', { skip: corpusAbsent }, () => {
  const entries = corpusEntries().filter((entry) => entry.expect === 'ok');
  assert.ok(entries.length > 0);
  for (const entry of entries) assertAsListed(corpusFile(entry), entry);
});

test('the other files give metadata or a typed error', { skip: corpusAbsent }, () => {
  let refused = 0;
  for (const entry of corpusEntries()) {
    if (entry.expect === 'ok') continue;
    try {
      const file = corpusFile(entry);
      for (const chunk of chunksOf(open(file).metadata)) {
        if (chunk.broken !== undefined) throw new DecodeError('METADATA', chunk.broken);
        countPages(file, chunk);
      }
    } catch (error) {
      assert.ok(error instanceof DecodeError, `${entry.source_path}: ${error}`);
      refused++;
    }
  }
  assert.ok(refused > 0);
});
