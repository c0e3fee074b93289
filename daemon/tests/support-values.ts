/** Random values for the claims of support.ts, and their canonical texts, each said without the code that it checks. */
import { Physical } from '../../decode/index.ts';
import type { SeededRandom } from '../../decode/tests/random.ts';
import type { ColumnValue, WriterColumn } from '../../decode/tests/writer/index.ts';
import { valueBytes } from '../../decode/tests/writer/index.ts';
import type { TypeClaim } from '../support.ts';

type Present = Exclude<ColumnValue, null>;

export interface ClaimColumn {
  readonly column: Omit<WriterColumn, 'name' | 'optional'>;
  readonly make: (random: SeededRandom) => Present;
  readonly text: (value: Present) => string;
}

const randomBytes = (random: SeededRandom, length: number): Uint8Array =>
  Uint8Array.from({ length }, () => random.below(256));
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
/** Bytes of a number as the file has them, the highest first. */
const bits = (bytes: Uint8Array, isNan: boolean): string =>
  isNan ? '"nan"' : `"${hex(Uint8Array.from(bytes).reverse())}"`;

function randomBigint(random: SeededRandom, bitCount: number): bigint {
  let value = 0n;
  for (let at = 0; at < bitCount; at += 32) value = (value << 32n) | BigInt(random.below(2 ** 32));
  return BigInt.asIntN(bitCount, value >> BigInt(random.below(bitCount)));
}

const FLOATS = [0, -0, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1.5, -1e-30, 3e38];
const JULIAN_EPOCH_DAY = 2_440_588;

/** Values of a physical type without an annotation. */
export function physicalColumn(physical: keyof typeof Physical, bytes = 3): ClaimColumn {
  const column = { physical: Physical[physical] };
  switch (physical) {
    case 'BOOLEAN':
      return { column, make: (random) => random.below(3) === 0, text: String };
    case 'INT32':
      return { column, make: (random) => Number(randomBigint(random, 32)), text: String };
    case 'INT64':
      return { column, make: (random) => randomBigint(random, 64), text: String };
    case 'INT96':
      return { column, make: int96, text: (value) => int96Text(value as Uint8Array) };
    case 'FLOAT':
    case 'DOUBLE': {
      const text = (value: Present): string => bits(valueBytes({ name: '', ...column }, value), Number.isNaN(value));
      return { column, make: (random) => FLOATS[random.below(FLOATS.length)]!, text };
    }
    case 'BYTE_ARRAY':
      return { column, make: (random) => randomBytes(random, random.below(20)), text: hexText };
    default:
      return {
        column: { ...column, typeLength: bytes },
        make: (random) => randomBytes(random, bytes),
        text: hexText,
      };
  }
}

const hexText = (value: Present): string => `"${hex(value as Uint8Array)}"`;

function int96(random: SeededRandom): Uint8Array {
  const bytes = Buffer.alloc(12);
  bytes.writeBigUInt64LE(BigInt(random.below(86_400)) * 1_000_000_000n + BigInt(random.below(1_000_000_000)), 0);
  bytes.writeUInt32LE(JULIAN_EPOCH_DAY - 10_000 + random.below(40_000), 8);
  return Uint8Array.from(bytes);
}

function int96Text(value: Uint8Array): string {
  const bytes = Buffer.from(value);
  const day = BigInt(bytes.readInt32LE(8) - JULIAN_EPOCH_DAY);
  return String(day * 86_400_000_000_000n + bytes.readBigInt64LE(0));
}

/** A column of a claimed type. Throws for an annotation that it does not know. */
export function typeColumn({ annotation, storage, bytes }: TypeClaim): ClaimColumn {
  const plain = physicalColumn(storage, bytes);
  const [, name = '', first, second] = /^(\w*)(?:\((\w+)(?:, (\w+))?\))?$/.exec(annotation) ?? [];
  const as = (logicalType: Record<string, unknown>, more: Partial<ClaimColumn> = {}): ClaimColumn => ({
    ...plain,
    ...more,
    column: { ...plain.column, logicalType },
  });
  switch (name) {
    case '':
      return plain;
    case 'INTEGER':
      return as(
        { INTEGER: { bitWidth: Number(first), isSigned: second === 'signed' } },
        integer(Number(first), second!),
      );
    case 'DECIMAL':
      return as(
        { DECIMAL: { precision: Number(first), scale: Number(second) } },
        decimal(Number(first), storage, bytes),
      );
    case 'FLOAT16':
      return as({ FLOAT16: {} }, half);
    case 'DATE':
      return as({ DATE: {} });
    case 'TIME':
    case 'TIMESTAMP':
      return as({ [name]: { isAdjustedToUTC: second === 'UTC', unit: { [first!]: {} } } });
    case 'STRING':
    case 'ENUM':
    case 'JSON':
      return as({ [name]: {} }, { make: (random) => TEXTS[random.below(TEXTS.length)]!, text: JSON.stringify });
    case 'INTERVAL': // has a ConvertedType only
      return { ...plain, column: { ...plain.column, converted: 21 } };
    case 'BSON':
    case 'UUID':
    case 'GEOMETRY':
    case 'GEOGRAPHY':
      return as({ [name]: {} });
    default:
      throw new Error(`no values for ${annotation}`);
  }
}

const TEXTS = ['', '"', 'a\\b\n', 'é漢🎈', 'null', '\u0001', 'x'.repeat(300)];

function integer(bitCount: number, sign: string): Partial<ClaimColumn> {
  const cut = sign === 'signed' ? BigInt.asIntN : BigInt.asUintN;
  const make = (random: SeededRandom): Present => {
    const value = randomBigint(random, bitCount);
    return bitCount === 64 ? value : Number(sign === 'signed' ? value : BigInt.asIntN(32, cut(bitCount, value)));
  };
  return { make, text: (value) => String(cut(bitCount, BigInt(value as number | bigint))) };
}

function decimal(digits: number, storage: TypeClaim['storage'], bytes: number | undefined): Partial<ClaimColumn> {
  const limit = 10n ** BigInt(digits);
  const number = (random: SeededRandom): bigint => randomBigint(random, 288) % limit;
  if (storage === 'INT32') return { make: (random) => Number(number(random)), text: String };
  if (storage === 'INT64') return { make: number, text: String };
  return {
    make: (random) => bigEndian(number(random), bytes ?? 1 + Math.floor((digits * 3.33) / 8) + random.below(2)),
    text: (value) => {
      const digitsText = hex(value as Uint8Array);
      return String(BigInt.asIntN(digitsText.length * 4, BigInt(`0x${digitsText}`)));
    },
  };
}

function bigEndian(value: bigint, length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, k) => Number((value >> BigInt(8 * (length - 1 - k))) & 255n));
}

const half: Partial<ClaimColumn> = {
  make: (random) => {
    const bytes = new Uint8Array(2);
    new DataView(bytes.buffer).setFloat16(0, [...FLOATS, 0.1, 65_504][random.below(FLOATS.length + 2)]!, true);
    return bytes;
  },
  text: (value) => {
    const bytes = value as Uint8Array;
    return bits(bytes, Number.isNaN(new DataView(bytes.buffer, bytes.byteOffset).getFloat16(0, true)));
  },
};
