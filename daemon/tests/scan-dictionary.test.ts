/** With `dictionary`, columns that cannot be dictionaries in Arrow hold the same values as without it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type RecordBatch, Type } from 'apache-arrow';
import { parquetWriteFile } from 'hyparquet-writer';
import { scan } from '../index.ts';
import { Lake } from './lake.ts';

interface Read {
  readonly rows: readonly string[];
  readonly types: readonly Type[];
}

async function read(path: string, dictionary: boolean): Promise<Read> {
  const rows: string[] = [];
  let types: readonly Type[] = [];
  for await (const batch of scan(path, { dictionary, decoders: 1, batchRows: 100 })) {
    types = (batch as RecordBatch).schema.fields.map(({ type }) => type.typeId);
    for (const row of batch) rows.push(row.toString());
  }
  return { rows, types };
}

test('strings in groups are expanded, strings beside them are not', async () => {
  await using lake = await Lake.create();
  const path = lake.path('groups.parquet');
  const data = Array.from({ length: 500 }, (_, k) => ({ t: k % 5 === 0 ? null : `x${k % 3}` }));
  await parquetWriteFile({
    filename: path,
    schema: [
      { name: 'root', num_children: 2 },
      { name: 's', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' },
      // a group that is never null: its column is as a flat one
      { name: 'g', num_children: 1, repetition_type: 'REQUIRED' },
      { name: 't', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'OPTIONAL' },
    ],
    columnData: [
      { name: 's', data: data.map(({ t }) => `name ${t}`), encoding: 'RLE_DICTIONARY' },
      { name: 'g', data, encoding: 'RLE_DICTIONARY' },
    ],
  });
  const [plain, encoded] = [await read(path, false), await read(path, true)];
  assert.deepEqual(plain.types, [Type.Utf8, Type.Struct]);
  assert.deepEqual(encoded.types, [Type.Dictionary, Type.Struct]);
  assert.equal(plain.rows.length, 500);
  assert.deepEqual(encoded.rows, plain.rows);
});

test('decimals in byte arrays are decimals, not their indices', async () => {
  await using lake = await Lake.create();
  const path = lake.path('decimals.parquet');
  await parquetWriteFile({
    filename: path,
    schema: [
      { name: 'root', num_children: 1 },
      { name: 'd', type: 'BYTE_ARRAY', converted_type: 'DECIMAL', precision: 9, scale: 2, repetition_type: 'REQUIRED' },
    ],
    columnData: [
      { name: 'd', data: Array.from({ length: 500 }, (_, k) => BigInt(k % 4) * 100n), encoding: 'RLE_DICTIONARY' },
    ],
  });
  const [plain, encoded] = [await read(path, false), await read(path, true)];
  assert.deepEqual(encoded, plain);
  assert.deepEqual(plain.types, [Type.Decimal]);
  assert.equal(new Set(plain.rows).size, 4);
});
