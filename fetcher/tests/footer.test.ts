import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { DecodeError } from '../../decode/index.ts';
import { FetchError } from '../errors.ts';
import { fetchFooter } from '../footer.ts';
import type { FileVersion } from '../transport/transport.ts';
import { MemoryTransport } from './memory-transport.ts';

/** A file of `columns` columns and 100 rows, as hyparquet-writer makes it. */
function makeFile(columns: number): Uint8Array {
  const columnData = Array.from({ length: columns }, (_, i) => ({
    name: `column number ${i}`,
    data: Array.from({ length: 100 }, (_, row) => row * i),
    type: 'INT32' as const,
  }));
  return new Uint8Array(parquetWriteBuffer({ columnData }));
}

async function open(bytes: Uint8Array): Promise<{ transport: MemoryTransport; file: FileVersion }> {
  const transport = new MemoryTransport({ 'a/b.parquet': bytes });
  const [file] = await transport.list('');
  return { transport, file: file! };
}

test('a small file is read whole, in one request', async () => {
  const bytes = makeFile(3);
  const { transport, file } = await open(bytes);
  const footer = await fetchFooter(transport, file);
  assert.equal(footer.metadata.leaves.length, 3);
  assert.equal(footer.metadata.numRows, 100);
  assert.deepEqual({ requests: footer.requests, bytes: footer.bytes }, { requests: 1, bytes: bytes.length });
  assert.deepEqual(transport.reads, [['a/b.parquet', 0, bytes.length]]);
});

test('a tail that holds the footer is enough', async () => {
  const bytes = makeFile(200);
  const { transport, file } = await open(bytes);
  const tailBytes = bytes.length - 5;
  const footer = await fetchFooter(transport, file, { tailBytes });
  assert.deepEqual(transport.reads, [['a/b.parquet', 5, bytes.length]]);
  assert.deepEqual({ requests: footer.requests, bytes: footer.bytes }, { requests: 1, bytes: tailBytes });
});

test('a larger footer takes a second read of what is missing, and gives the same', async () => {
  const bytes = makeFile(50);
  const { transport, file } = await open(bytes);
  const whole = await fetchFooter(transport, file);
  const footerStart = bytes.length - 8 - whole.metadata.footerBytes;
  for (const tailBytes of [0, 8, 9, 500, whole.metadata.footerBytes + 7]) {
    transport.reads.length = 0;
    const footer = await fetchFooter(transport, file, { tailBytes });
    const tailStart = bytes.length - Math.max(8, tailBytes);
    assert.deepEqual(transport.reads, [
      ['a/b.parquet', tailStart, bytes.length],
      ['a/b.parquet', footerStart, tailStart],
    ]);
    assert.deepEqual(footer.metadata, whole.metadata);
    assert.deepEqual(
      { requests: footer.requests, bytes: footer.bytes },
      { requests: 2, bytes: bytes.length - footerStart },
    );
  }
  transport.reads.length = 0;
  await fetchFooter(transport, file, { tailBytes: whole.metadata.footerBytes + 8 });
  assert.equal(transport.reads.length, 1);
});

test('files that are not Parquet are refused by name, without reading more', async () => {
  const refuses = async (bytes: Uint8Array, code: string, reads: number) => {
    const { transport, file } = await open(bytes);
    await assert.rejects(
      fetchFooter(transport, file, { tailBytes: 64 }),
      (error) => error instanceof DecodeError && error.code === code && error.message.includes('a/b.parquet'),
    );
    assert.equal(transport.reads.length, reads);
  };
  const changed = (at: number, value: number) => {
    const copy = makeFile(50);
    copy[copy.length + at] = value;
    return copy;
  };
  await refuses(new Uint8Array(0), 'MAGIC', 0);
  await refuses(new Uint8Array(100), 'MAGIC', 1);
  await refuses(changed(-1, 0x45), 'ENCRYPTED', 1);
  await refuses(changed(-5, 0x80), 'FOOTER', 1);
  const footer = changed(-1, 0x31);
  footer.fill(0xee, footer.length - 1000, footer.length - 8);
  await refuses(footer, 'THRIFT', 2);
});

test('errors of the transport pass as they are', async () => {
  const { transport, file } = await open(makeFile(3));
  const signal = AbortSignal.abort();
  await assert.rejects(
    fetchFooter(transport, file, { signal }),
    (error) => error instanceof FetchError && error.code === 'CANCELLED',
  );
  transport.replace('a/b.parquet', makeFile(3), 'v2');
  await assert.rejects(fetchFooter(transport, file), (error) => error instanceof FetchError && error.code === 'STALE');
});

test('a tail that came with the look takes no read, and its time is that of the first request', async () => {
  const bytes = makeFile(50);
  const { transport, file } = await open(bytes);
  const whole = await fetchFooter(transport, file);
  const footerBytes = whole.metadata.footerBytes + 8;
  for (const [tailBytes, reads] of [
    [footerBytes, 0],
    [footerBytes - 1, 1],
    [8, 1],
    [7, 1],
  ] as const) {
    transport.reads.length = 0;
    const tail = bytes.subarray(bytes.length - tailBytes);
    const footer = await fetchFooter(transport, file, { tail, tailMs: -7 });
    assert.equal(transport.reads.length, reads);
    assert.deepEqual(footer.metadata, whole.metadata);
    // one that does not tell where the footer is counts for nothing
    assert.equal(footer.latencyMs === -7, tailBytes >= 8);
  }
});
