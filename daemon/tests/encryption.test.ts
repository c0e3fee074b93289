/** Modular encryption is recognised: what is encrypted is named in the error, what is not scans. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DecodeError, Physical } from '../../decode/index.ts';
import type { Tree } from '../../decode/tests/thrift-twin.ts';
import { writeFile } from '../../decode/tests/writer/index.ts';
import { ScanEngine } from '../scan/engine.ts';
import { Lake } from './lake.ts';
import { scanBytes, valuesAt } from './table-file.ts';

const SIGNATURE_BYTES = 28;

/** A plaintext footer of columns a, b, c, all INT32 with the values 0 to 99; `change` gets the chunk of b. */
function fileOf(change: (chunk: Tree) => void, signature = SIGNATURE_BYTES): Uint8Array {
  const values = [...Array(100).keys()];
  const rowGroup = ['a', 'b', 'c'].map((name) => ({
    column: { name, physical: Physical.INT32 },
    values,
    pages: [{}],
  }));
  const { bytes } = writeFile({
    rowGroups: [rowGroup, rowGroup],
    footer: (footer) => {
      footer.encryption_algorithm = { AES_GCM_V1: { aad_file_unique: new Uint8Array(8) } };
      footer.footer_signing_key_metadata = Buffer.from('kf');
      for (const group of footer.row_groups as Tree[]) change((group.columns as Tree[])[1]!);
    },
  });
  return signed(bytes, signature);
}

/** The footer's signature (nonce and tag) stands between its Thrift and its length, and counts as part of it. */
function signed(bytes: Uint8Array, signature: number): Uint8Array {
  const tail = Buffer.from(bytes.subarray(-8));
  tail.writeUInt32LE(tail.readUInt32LE(0) + signature, 0);
  return Buffer.concat([bytes.subarray(0, -8), Buffer.alloc(signature, 0xab), tail]);
}

describe('modular encryption', () => {
  let lake: Lake;
  let engine: ScanEngine;
  before(async () => {
    lake = await Lake.create();
    engine = new ScanEngine({ memoryBytes: 32 << 20, decoders: 1 });
  });
  after(async () => {
    await engine.close();
    await lake[Symbol.asyncDispose]();
  });
  const scan = (bytes: Uint8Array, columns?: string[]) =>
    scanBytes(engine, lake.folder, bytes, columns === undefined ? {} : { columns });
  const refusal = async (bytes: Uint8Array, columns?: string[]): Promise<DecodeError> => {
    try {
      await scan(bytes, columns);
    } catch (error) {
      assert.ok(error instanceof DecodeError, String(error));
      return error;
    }
    return assert.fail('it was read');
  };

  const encryptions: Readonly<Record<string, (chunk: Tree) => void>> = {
    'with a column key, metadata for readers without keys left in': (chunk) => {
      chunk.crypto_metadata = {
        ENCRYPTION_WITH_COLUMN_KEY: { path_in_schema: ['b'], key_metadata: Buffer.from('kc') },
      };
      chunk.encrypted_column_metadata = Buffer.alloc(80, 0xcd);
    },
    'with a column key, without plaintext metadata': (chunk) => {
      delete chunk.meta_data;
      chunk.crypto_metadata = { ENCRYPTION_WITH_COLUMN_KEY: { path_in_schema: ['b'] } };
      chunk.encrypted_column_metadata = Buffer.alloc(80, 0xcd);
    },
    'with the footer key': (chunk) => {
      chunk.crypto_metadata = { ENCRYPTION_WITH_FOOTER_KEY: {} };
    },
  };
  for (const [name, change] of Object.entries(encryptions)) {
    test(`a column encrypted ${name}`, async () => {
      const bytes = fileOf(change);
      for (const columns of [undefined, ['b'], ['a', 'b']]) {
        const error = await refusal(bytes, columns);
        assert.equal(error.code, 'ENCRYPTED');
        assert.equal(error.place.column, 'b');
        assert.match(error.message, /made\.parquet, column "b", row group 0: the column is encrypted/);
      }
      const others = await scan(bytes, ['c', 'a']);
      const expected = [...Array(100).keys(), ...Array(100).keys()];
      assert.deepEqual(valuesAt(others, 0), expected);
      assert.deepEqual(valuesAt(others, 1), expected);
    });
  }

  test('a signed footer of a file in which nothing is encrypted', async () => {
    for (const signature of [0, SIGNATURE_BYTES, 1000]) {
      assert.equal((await scan(fileOf(() => {}, signature))).rows, 200);
    }
  });

  test('an encrypted footer', async () => {
    const bytes = Buffer.from(fileOf(() => {}));
    bytes.write('PARE', 0);
    bytes.write('PARE', bytes.length - 4);
    const error = await refusal(bytes);
    assert.equal(error.code, 'ENCRYPTED');
    assert.match(error.message, /made\.parquet.*the footer is encrypted \(PARE\)/);
  });
});
