/** Page headers, sizes, checksums and compressed bytes that lie: each a typed error with its place. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ChunkDecoder } from '../column/chunk-decoder.ts';
import { DecodeError } from '../errors.ts';
import { Codec, Encoding, nameOf, Physical } from '../format/enums.ts';
import { assertDecodes, LINES, runChunk, specOf } from './chunk-run.ts';
import {
  assertRefused,
  BITS,
  BOOLEAN,
  DICTIONARY,
  environments,
  GAPS,
  INDEXED,
  INT64,
  NUMBERS,
  OPTIONAL,
  refuses,
  STRING,
  STRINGS,
} from './hostile-chunk.ts';
import type { Tree } from './thrift-twin.ts';
import { CODECS, compress, type PagePlan, writeChunk } from './writer/index.ts';

const { pool, wasm } = environments;
const numbers = (...pages: PagePlan[]) => ({ column: INT64, values: NUMBERS, pages });
const gaps = (...pages: PagePlan[]) => ({ column: OPTIONAL, values: GAPS, pages });
const field = (name: string, value: number) => ({
  header: (header: Tree) => {
    header[name] = value;
  },
});
const inner = (struct: string, name: string, value: number | boolean) => ({
  header: (header: Tree) => {
    (header[struct] as Tree)[name] = value;
  },
});
const v1 = (name: string, value: number) => inner('data_page_header', name, value);
const v2 = (name: string, value: number | boolean) => ({
  version: 2 as const,
  ...inner('data_page_header_v2', name, value),
});

// ---- sizes
refuses('compressed size past the end of the chunk', {
  plan: numbers({ rows: 50 }, { rows: 50, ...field('compressed_page_size', 401) }),
  code: 'PAGE_HEADER',
  says: /page of 401 bytes passes the end of its chunk \(expected at most 400 bytes\)/,
  page: 1,
});
refuses('compressed size of 2 GiB', {
  plan: numbers(field('compressed_page_size', 2 ** 31 - 1)),
  code: 'PAGE_HEADER',
  says: /passes the end of its chunk/,
});
refuses('negative compressed size', {
  plan: numbers(field('compressed_page_size', -1)),
  code: 'PAGE_HEADER',
  says: /sizes are -1 compressed, 800 uncompressed/,
});
refuses('negative uncompressed size', {
  plan: numbers({ rows: 1 }, field('uncompressed_page_size', -(2 ** 31))),
  code: 'PAGE_HEADER',
  says: /sizes are 792 compressed, -2147483648 uncompressed/,
  page: 1,
});
for (const codec of CODECS) {
  for (const by of [-1, 1, 40]) {
    refuses(`uncompressed size that ${nameOf(Codec, codec)} does not yield, off by ${by}`, {
      plan: { ...numbers({ rows: 10 }, field('uncompressed_page_size', 720 + by)), codec },
      code: codec === Codec.UNCOMPRESSED ? 'PAGE_HEADER' : 'CODEC',
      says: codec === Codec.UNCOMPRESSED ? /uncompressed page of 720 bytes declares/ : new RegExp(nameOf(Codec, codec)),
      page: 1,
    });
  }
}

// ---- bombs
refuses('a Snappy page that declares 1 GiB in its header', {
  plan: { ...numbers(field('uncompressed_page_size', 2 ** 30)), codec: Codec.SNAPPY },
  code: 'CODEC',
  says: /SNAPPY bytes can't become the declared 1073741824/,
});
refuses('a Snappy block that declares 1 GiB in a page that declares 800 bytes', {
  plan: {
    ...numbers({ body: () => Uint8Array.of(0x80, 0x80, 0x80, 0x80, 4, ...new Uint8Array(60)) }),
    codec: Codec.SNAPPY,
  },
  code: 'CODEC',
  says: /SNAPPY page has a length that disagrees/,
});
for (const codec of [Codec.GZIP, Codec.LZ4_RAW]) {
  refuses(`a ${nameOf(Codec, codec)} page that declares 1 GiB`, {
    plan: { ...numbers(field('uncompressed_page_size', 2 ** 30)), codec },
    code: 'CODEC',
    says: /can't become the declared 1073741824/,
  });
}
const ZEROS = new Uint8Array(64 << 20);
for (const codec of CODECS.filter((codec) => codec !== Codec.UNCOMPRESSED)) {
  const bomb = compress(codec, ZEROS);
  refuses(`a ${nameOf(Codec, codec)} bomb: 64 MiB of zeros in a page that declares 800 bytes`, {
    plan: { ...numbers({ body: () => bomb }), codec },
    code: 'CODEC',
    says: new RegExp(`${nameOf(Codec, codec)} page`),
  });
}
for (const codec of [Codec.BROTLI, Codec.ZSTD]) {
  test(`a ${nameOf(Codec, codec)} page that declares 1 GiB asks for memory and allocates none`, () => {
    const plan = { ...numbers(field('uncompressed_page_size', 2 ** 30)), codec };
    const chunk = writeChunk(plan);
    const before = pool.usedBytes;
    class Short extends Error {}
    assert.throws(
      () =>
        runChunk(wasm, specOf(plan, chunk), chunk.bytes, {
          onMemory: () => {
            assert.equal(pool.refusedBytes, 2 ** 30);
            assert.ok(pool.usedBytes - before <= 3 * 4096, 'states and input only');
            throw new Short();
          },
        }),
      Short,
    );
  });
}
for (const codec of CODECS.filter((codec) => codec !== Codec.UNCOMPRESSED)) {
  test(`every cut of a ${nameOf(Codec, codec)} page, and garbage in its place`, () => {
    const { length } = compress(codec, new Uint8Array(800));
    for (let keep = 0; keep < length; keep += 3) {
      const plan = { ...numbers({ plain: () => new Uint8Array(800), body: (body) => body.subarray(0, keep) }), codec };
      assertRefused({ plan, code: 'CODEC', says: /CODEC/ });
    }
    const garbage = { body: () => Uint8Array.from({ length: 60 }, (_, i) => (i * 77 + 200) & 255) };
    assertRefused({ plan: { ...numbers(garbage), codec }, code: 'CODEC', says: /CODEC/ });
  });
}

// ---- V2 levels
for (const [name, value] of [
  ['definition_levels_byte_length', 5000],
  ['definition_levels_byte_length', -1],
  ['repetition_levels_byte_length', 5000],
  ['repetition_levels_byte_length', -5],
  ['definition_levels_byte_length', 2 ** 31 - 1],
] as const) {
  refuses(`V2 page whose ${name} is ${value}`, {
    plan: gaps(v2(name, value)),
    code: 'PAGE_HEADER',
    says: new RegExp(`levels take .*${value}`),
  });
}
test('V2 page of a flat column with repetition levels, which are stepped over whenever they arrive', () => {
  const page: PagePlan = { version: 2, repetition: () => Uint8Array.of(1, 2, 3, 4, 5) };
  for (const environment of [environments.wasm, environments.scalar]) {
    for (const step of [1, 2, 30]) {
      const feed = { borders: [], early: true, next: (arrived: number) => arrived + step };
      assertDecodes(environment, gaps(page), {}, { feed });
    }
  }
});
refuses('V2 page whose levels take more than its uncompressed size', {
  plan: gaps({ version: 2, ...field('uncompressed_page_size', 3) }),
  code: 'PAGE_HEADER',
  says: /levels take/,
});
refuses('V2 page with more nulls than values', {
  plan: gaps(v2('num_nulls', 101)),
  code: 'PAGE_HEADER',
  says: /100 values, 101 nulls/,
});
refuses('V2 Snappy page that ends with its levels and declares values', {
  plan: { ...gaps({ version: 2, values: () => new Uint8Array(40), body: (body) => body.subarray(0, 14) }), codec: 1 },
  code: 'CODEC',
  says: /SNAPPY page ends inside a value/,
});
refuses('V2 page that says it is stored, and is not', {
  plan: { ...gaps(v2('is_compressed', false)), codec: Codec.GZIP },
  code: 'PAGE_HEADER',
  says: /uncompressed page of \d+ bytes declares/,
});

// ---- counts
refuses('a page of more values than are left of the chunk', {
  plan: numbers({ rows: 60 }, v1('num_values', 41)),
  code: 'PAGE_HEADER',
  says: /page of 41 values \(expected at most 40, what is left of the chunk's 100\)/,
  page: 1,
});
refuses('a page that has fewer values than its header says', {
  plan: numbers({ rows: 60 }, v1('num_values', 41)),
  spec: { numValues: 101 },
  code: 'PAGE',
  says: /PLAIN values end before the page has all of its values/,
  page: 1,
});
refuses('a page whose header says fewer values than the chunk has', {
  plan: numbers(v1('num_values', 99)),
  code: 'METADATA',
  says: /the chunk ends before it has all of its values \(expected 100 values\)/,
  page: -1,
});
refuses('a negative count of values', {
  plan: numbers(v1('num_values', -1)),
  code: 'PAGE_HEADER',
  says: /has -1 values/,
});
refuses('a chunk of an absurd count of values', {
  plan: numbers({}),
  spec: { numValues: Number.MAX_SAFE_INTEGER, windowRows: 65536 },
  code: 'METADATA',
  says: /expected 9007199254740991 values/,
  page: -1,
});
refuses('a page of 2^31 - 1 values in 800 bytes', {
  plan: numbers(v1('num_values', 2 ** 31 - 1)),
  spec: { numValues: 2 ** 40, uncompressedBytes: 2 ** 50, windowRows: 65536 },
  code: 'PAGE',
  says: /PLAIN values end/,
});
refuses('a chunk without a page', {
  plan: { column: INT64, values: NUMBERS, pages: [] },
  code: 'METADATA',
  says: /the chunk ends before it has all of its values/,
  page: -1,
});
refuses('a chunk of index pages only', {
  plan: numbers({ type: 'index' }, { type: 'index' }),
  code: 'METADATA',
  says: /the chunk ends before it has all of its values/,
  page: -1,
});

// ---- headers
test('a chunk cut at any byte', () => {
  const plan = numbers({ rows: 2 }, { rows: 98, ...DICTIONARY, type: 'data' });
  const chunk = writeChunk(plan);
  for (let cut = 0; cut < chunk.pages[1]!.body; cut++) {
    const page = cut < chunk.pages[0]!.end ? 0 : 1;
    const { start, body } = chunk.pages[page]!;
    if (cut === start) assertRefused({ plan, cut, code: 'METADATA', says: /chunk ends before/, page: -1 });
    else if (cut < body) assertRefused({ plan, cut, code: 'PAGE_HEADER', says: /ends inside a page header/, page });
    else assertRefused({ plan, cut, code: 'PAGE_HEADER', says: /passes the end of its chunk/, page });
  }
});
refuses('a header that is no Thrift', {
  plan: numbers({ rows: 50 }, { rows: 50, headerBytes: (header) => header.fill(0xff) }),
  code: 'THRIFT',
  says: /decode THRIFT/,
  page: 1,
});
refuses('a page of an unknown type', {
  plan: numbers(field('type', 9)),
  code: 'PAGE_HEADER',
  says: /page type 9 does not exist/,
});
refuses('a page without the struct of its type', {
  plan: numbers(field('type', 3)),
  code: 'PAGE_HEADER',
  says: /DATA_PAGE_V2 without its header struct/,
});

// ---- checksums
for (const version of [1, 2] as const) {
  refuses(`V${version} data page with a wrong CRC`, {
    plan: gaps({ rows: 50, version, crc: true }, { version, crc: true, ...field('crc', 0x1234567) }),
    code: 'CHECKSUM',
    says: /page CRC-32 is 0x[0-9a-f]{8} \(expected 0x01234567\)/,
    page: 1,
  });
}
refuses('dictionary page with a wrong CRC', {
  plan: numbers({ ...DICTIONARY, ...field('crc', -1) }, INDEXED),
  code: 'CHECKSUM',
  says: /expected 0xffffffff/,
});
test('a CRC is not looked at when checksums are off', () => {
  const plan = gaps({ version: 2, ...field('crc', 5) });
  assertDecodes({ ...wasm, verifyChecksums: false }, plan, {}, { feed: LINES });
});
test('any changed bit of a page with a CRC is found', () => {
  const plan = gaps({ crc: true });
  const chunk = writeChunk(plan);
  const { body, end } = chunk.pages[0]!;
  for (let at = body; at < end; at += 5) {
    const bytes = (whole: Uint8Array) => {
      const changed = Uint8Array.from(whole);
      changed[at]! ^= 1 << (at & 7);
      return changed;
    };
    assertRefused({ plan, bytes, code: 'CHECKSUM', says: /page CRC-32/ });
  }
});

// ---- what is not supported
for (const encoding of [Encoding.BIT_PACKED, 1, 99]) {
  refuses(`values in encoding ${nameOf(Encoding, encoding)}`, {
    plan: numbers({ rows: 60 }, { encoding }),
    code: 'UNSUPPORTED',
    says: new RegExp(`encoding ${nameOf(Encoding, encoding)} is not supported`),
    page: 1,
  });
}
for (const [encoding, column, values, expected] of [
  [Encoding.DELTA_BINARY_PACKED, STRING, STRINGS, 'INT32 or INT64'],
  [Encoding.DELTA_BINARY_PACKED, BOOLEAN, BITS, 'INT32 or INT64'],
  [Encoding.DELTA_LENGTH_BYTE_ARRAY, INT64, NUMBERS, 'BYTE_ARRAY'],
  [Encoding.DELTA_BYTE_ARRAY, INT64, NUMBERS, 'BYTE_ARRAY or FIXED_LEN_BYTE_ARRAY'],
  [Encoding.BYTE_STREAM_SPLIT, STRING, STRINGS, 'a fixed-width type'],
  [Encoding.BYTE_STREAM_SPLIT, BOOLEAN, BITS, 'a fixed-width type'],
  [Encoding.RLE, STRING, STRINGS, 'BOOLEAN'],
] as const) {
  refuses(`${nameOf(Encoding, encoding)} on ${nameOf(Physical, column.physical)}`, {
    plan: { column, values, pages: [{ rows: 60 }, { encoding, values: () => new Uint8Array(40) }] },
    code: 'PAGE_HEADER',
    says: new RegExp(`encoding ${nameOf(Encoding, encoding)} on .* \\(expected ${expected}\\)`),
    page: 1,
  });
}
for (const encoding of [Encoding.PLAIN, Encoding.DELTA_BINARY_PACKED, 99]) {
  refuses(`definition levels in encoding ${nameOf(Encoding, encoding)}`, {
    plan: gaps(v1('definition_level_encoding', encoding)),
    code: 'LEVELS',
    says: /levels in encoding \w+ \(expected RLE or BIT_PACKED\)/,
  });
}
refuses('RLE on numbers', {
  plan: numbers({ encoding: Encoding.RLE }),
  code: 'PAGE_HEADER',
  says: /encoding RLE on INT64 \(expected BOOLEAN\)/,
});
refuses('dictionary indices of booleans', {
  plan: { column: BOOLEAN, values: BITS, pages: [{ encoding: Encoding.RLE_DICTIONARY, indexWidth: 1 }] },
  code: 'PAGE_HEADER',
  says: /booleans can not be dictionary-encoded/,
});
for (const codec of [Codec.LZO, 8, -1]) {
  test(`codec ${nameOf(Codec, codec)} is refused before anything is allocated`, () => {
    const plan = { ...numbers({}), codec };
    const before = pool.usedBytes;
    assert.throws(
      () => new ChunkDecoder(wasm, specOf(plan, writeChunk(plan))),
      (error) =>
        error instanceof DecodeError &&
        error.code === 'UNSUPPORTED' &&
        error.message.includes('column "the int64", offset 1000: codec') &&
        error.place.column === 'the int64',
    );
    assert.equal(pool.usedBytes, before);
  });
}
