/** Every logical and converted type on every physical type: the Arrow type, or why not. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Decimal } from 'apache-arrow';
import { Converted } from '../../decode/format/enums.ts';
import { buildFields, Physical, parseFooter } from '../../decode/index.ts';
import { emptyChunk, footerBytes } from '../../decode/tests/footer-model.ts';
import type { Tree } from '../../decode/tests/thrift-twin.ts';
import { arrowNode } from '../arrow/arrow-type.ts';

/** Physical types by name; a number is the length of a FIXED_LEN_BYTE_ARRAY. */
const PHYSICALS: Readonly<Record<string, { readonly type: number; readonly length?: number; readonly plain: string }>> =
  {
    BOOLEAN: { type: Physical.BOOLEAN, plain: 'Bool' },
    INT32: { type: Physical.INT32, plain: 'Int32' },
    INT64: { type: Physical.INT64, plain: 'Int64' },
    INT96: { type: Physical.INT96, plain: 'Timestamp<NANOSECOND>' },
    FLOAT: { type: Physical.FLOAT, plain: 'Float32' },
    DOUBLE: { type: Physical.DOUBLE, plain: 'Float64' },
    BYTE_ARRAY: { type: Physical.BYTE_ARRAY, plain: 'Binary' },
    FLBA1: { type: Physical.FIXED_LEN_BYTE_ARRAY, length: 1, plain: 'FixedSizeBinary[1]' },
    FLBA2: { type: Physical.FIXED_LEN_BYTE_ARRAY, length: 2, plain: 'FixedSizeBinary[2]' },
    FLBA12: { type: Physical.FIXED_LEN_BYTE_ARRAY, length: 12, plain: 'FixedSizeBinary[12]' },
    FLBA16: { type: Physical.FIXED_LEN_BYTE_ARRAY, length: 16, plain: 'FixedSizeBinary[16]' },
    FLBA20: { type: Physical.FIXED_LEN_BYTE_ARRAY, length: 20, plain: 'FixedSizeBinary[20]' },
  };

interface Case {
  readonly name: string;
  readonly element: Tree;
  /** By physical type: the Arrow type. On others the annotation does not fit. */
  readonly fits: Readonly<Record<string, string>>;
  /** Where it does not fit the column is refused; else its bytes are read as they are, with a note. */
  readonly refuses?: true;
  readonly metadata?: readonly [key: string, value: string];
  /** No misfit, and nothing to note: the storage as it is. */
  readonly everywhere?: true;
}

const kept = (name: string) => ({ metadata: ['PARQUET:logical_type', name] }) as const;
const logical = (name: string, fits: Case['fits'], more: Partial<Case> = {}): Case => {
  return { name: `${name} (logical)`, element: { logicalType: { [name]: {} } }, fits, ...more };
};
const timeOf = (kind: 'TIME' | 'TIMESTAMP', unit: string, utc: boolean, fits: Case['fits']): Case => ({
  name: `${kind} ${unit}${utc ? ' UTC' : ''} (logical)`,
  element: { logicalType: { [kind]: { isAdjustedToUTC: utc, unit: { [unit]: {} } } } },
  fits,
  refuses: true,
});
const integer = (bitWidth: number, isSigned: boolean): Case => ({
  name: `INTEGER ${bitWidth} ${isSigned} (logical)`,
  element: { logicalType: { INTEGER: { bitWidth, isSigned } } },
  fits: { [bitWidth === 64 ? 'INT64' : 'INT32']: `${isSigned ? 'Int' : 'Uint'}${bitWidth}` },
  refuses: true,
});
const converted = (name: keyof typeof Converted, fits: Case['fits'], more: Partial<Case> = {}): Case => {
  return { name: `${name} (converted)`, element: { converted_type: Converted[name] }, fits, ...more };
};
const decimal = (precision: number, scale: number, arrow: string, form: 'logical' | 'converted'): Case => ({
  name: `DECIMAL ${precision} ${scale} (${form})`,
  element:
    form === 'logical'
      ? { logicalType: { DECIMAL: { precision, scale } } }
      : { converted_type: Converted.DECIMAL, precision, scale },
  fits: Object.fromEntries(
    Object.keys(PHYSICALS)
      .filter((name) => /^(INT32|INT64|BYTE_ARRAY|FLBA)/.test(name))
      .map((name) => [name, arrow]),
  ),
  refuses: true,
});
const refuses = { refuses: true } as const;
const bytes = { BYTE_ARRAY: 'Utf8' };
const binary = { BYTE_ARRAY: 'Binary' };

const CASES: readonly Case[] = [
  { name: 'none', element: {}, fits: {}, everywhere: true },
  logical('STRING', bytes),
  logical('ENUM', bytes, kept('ENUM')),
  logical('JSON', bytes, { metadata: ['ARROW:extension:name', 'arrow.json'] }),
  logical('BSON', binary, kept('BSON')),
  logical('GEOMETRY', binary, kept('GEOMETRY')),
  logical('GEOGRAPHY', binary, kept('GEOGRAPHY')),
  logical('UUID', { FLBA16: 'FixedSizeBinary[16]' }, { metadata: ['ARROW:extension:name', 'arrow.uuid'] }),
  logical('FLOAT16', { FLBA2: 'Float16' }),
  logical('DATE', { INT32: 'Date32<DAY>' }, refuses),
  logical('UNKNOWN', Object.fromEntries(Object.keys(PHYSICALS).map((name) => [name, 'Null']))),
  logical('MAP', {}),
  logical('LIST', {}),
  logical('VARIANT', {}),
  { ...logical('FROM_THE_FUTURE', {}, kept('UNKNOWN')), everywhere: true },
  timeOf('TIME', 'MILLIS', true, { INT32: 'Time32<MILLISECOND>' }),
  timeOf('TIME', 'MICROS', false, { INT64: 'Time64<MICROSECOND>' }),
  timeOf('TIME', 'NANOS', true, { INT64: 'Time64<NANOSECOND>' }),
  timeOf('TIMESTAMP', 'MILLIS', false, { INT64: 'Timestamp<MILLISECOND>' }),
  timeOf('TIMESTAMP', 'MICROS', false, { INT64: 'Timestamp<MICROSECOND>' }),
  timeOf('TIMESTAMP', 'NANOS', false, { INT64: 'Timestamp<NANOSECOND>' }),
  timeOf('TIMESTAMP', 'MILLIS', true, { INT64: 'Timestamp<MILLISECOND, UTC>' }),
  timeOf('TIMESTAMP', 'MICROS', true, { INT64: 'Timestamp<MICROSECOND, UTC>' }),
  timeOf('TIMESTAMP', 'NANOS', true, { INT64: 'Timestamp<NANOSECOND, UTC>' }),
  ...[8, 16, 32, 64].flatMap((width) => [integer(width, true), integer(width, false)]),
  ...(['logical', 'converted'] as const).flatMap((form) => [
    decimal(5, 2, 'Decimal[5e+2]', form),
    decimal(38, 0, 'Decimal[38e0]', form),
    decimal(39, 10, 'Decimal[39e+10]', form),
    decimal(76, 76, 'Decimal[76e+76]', form),
  ]),
  { name: 'DECIMAL 0 0', element: { converted_type: Converted.DECIMAL, precision: 0 }, fits: {}, refuses: true },
  { name: 'DECIMAL 2 3', element: { logicalType: { DECIMAL: { precision: 2, scale: 3 } } }, fits: {}, refuses: true },
  converted('UTF8', bytes),
  converted('MAP', {}),
  converted('MAP_KEY_VALUE', {}),
  converted('LIST', {}),
  converted('ENUM', bytes, kept('ENUM')),
  converted('DATE', { INT32: 'Date32<DAY>' }, refuses),
  converted('TIME_MILLIS', { INT32: 'Time32<MILLISECOND>' }, refuses),
  converted('TIME_MICROS', { INT64: 'Time64<MICROSECOND>' }, refuses),
  converted('TIMESTAMP_MILLIS', { INT64: 'Timestamp<MILLISECOND, UTC>' }, refuses),
  converted('TIMESTAMP_MICROS', { INT64: 'Timestamp<MICROSECOND, UTC>' }, refuses),
  ...([8, 16, 32, 64] as const).flatMap((width) => [
    converted(`UINT_${width}`, { [width === 64 ? 'INT64' : 'INT32']: `Uint${width}` }, refuses),
    converted(`INT_${width}`, { [width === 64 ? 'INT64' : 'INT32']: `Int${width}` }, refuses),
  ]),
  converted('JSON', bytes, { metadata: ['ARROW:extension:name', 'arrow.json'] }),
  converted('BSON', binary, kept('BSON')),
  converted('INTERVAL', { FLBA12: 'FixedSizeBinary[12]' }, kept('INTERVAL')),
  { name: 'converted type 22', element: { converted_type: 22 }, fits: {} },
  { name: 'converted type -3', element: { converted_type: -3 }, fits: {} },
];

/** The leaf as the scan's Arrow schema has it, and why its chunk can't be read. */
function leafOf(physical: string, element: Tree) {
  const { type, length } = PHYSICALS[physical]!;
  const schema: Tree[] = [
    { name: 'root', num_children: 1 },
    { name: 'a', type, repetition_type: 1, ...(length === undefined ? {} : { type_length: length }), ...element },
  ];
  const groups = [{ columns: [emptyChunk('a', type)], total_byte_size: 0n, num_rows: 0n }];
  const footer = footerBytes({ version: 1, schema, num_rows: 0n, row_groups: groups });
  const { root, leaves, rowGroups } = parseFooter(footer, footer.length + 12);
  const broken = rowGroups[0]!.columns[0]!.broken;
  const fields = buildFields(root, leaves);
  return { broken, field: arrowNode(fields[0]!, { dictionary: false, nullable: false }).field };
}

for (const { name, element, fits, refuses: isRefused, metadata, everywhere } of CASES) {
  test(name, () => {
    for (const [physical, { plain }] of Object.entries(PHYSICALS)) {
      const { broken, field } = leafOf(physical, element);
      const expected = fits[physical];
      if (expected === undefined && isRefused) {
        assert.match(broken ?? 'it is read', /does not fit/, physical);
        continue;
      }
      assert.equal(broken, undefined, physical);
      assert.equal(String(field.type), expected ?? plain, physical);
      if (expected !== undefined || everywhere) {
        if (metadata === undefined) assert.equal(field.metadata.size, 0, physical);
        else assert.equal(field.metadata.get(metadata[0]), metadata[1], physical);
      } else assert.match(field.metadata.get('PARQUET:note') ?? 'no note', /does not fit|is not known/, physical);
    }
  });
}

test('every converted type is in the table', () => {
  for (const name of Object.keys(Converted)) {
    assert.ok(
      CASES.some((one) => one.name === `${name} (converted)` || (name === 'DECIMAL' && /converted/.test(one.name))),
      name,
    );
  }
});

test('what is not known is noted', () => {
  const future = leafOf('INT32', { logicalType: { FROM_THE_FUTURE: { parameter: 1 } } });
  assert.equal(String(future.field.type), 'Int32');
  assert.match(future.field.metadata.get('PARQUET:note')!, /field 40 is not known/);
  assert.match(leafOf('INT32', { converted_type: 22 }).field.metadata.get('PARQUET:note')!, /type 22 is not known/);
});

test('decimals of more digits than Arrow has come as they are stored', () => {
  const { broken, field } = leafOf('BYTE_ARRAY', { logicalType: { DECIMAL: { precision: 100, scale: 4 } } });
  assert.equal(broken, undefined);
  assert.equal(String(field.type), 'Binary');
  assert.equal(field.metadata.get('PARQUET:logical_type'), 'DECIMAL(100, 4)');
});

test('a logical type that does not fit gives way to a converted type that does', () => {
  const element = { logicalType: { UUID: {} }, converted_type: Converted.UTF8 };
  assert.equal(String(leafOf('BYTE_ARRAY', element).field.type), 'Utf8');
});

test('decimals have 128 bits as long as they can', () => {
  for (const [precision, bits] of [
    [1, 128],
    [38, 128],
    [39, 256],
    [76, 256],
  ]) {
    const { field } = leafOf('FLBA20', { logicalType: { DECIMAL: { precision: precision!, scale: 1 } } });
    assert.equal((field.type as Decimal).bitWidth, bits);
  }
});

test('nothing but nulls stays as it is stored where nulls are not allowed', () => {
  const { field } = leafOf('INT32', { logicalType: { UNKNOWN: {} }, repetition_type: 0 });
  assert.equal(String(field.type), 'Int32');
});
