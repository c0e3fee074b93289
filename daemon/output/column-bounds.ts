/**
 * A column's least and greatest value over row groups, by their statistics: stored bounds are compared as the values of
 * their type, as LogicalTypes.md and ColumnOrder say, not as texts.
 */
import { type ColumnChunk, type LeafColumn, Physical } from '../../decode/index.ts';

/** The bounds of a chunk that may be trusted: the deprecated ones were compared as signed values, whatever the type. */
export function chunkBounds(leaf: LeafColumn, { statistics }: ColumnChunk): { min?: Uint8Array; max?: Uint8Array } {
  const old = isSignedOrder(leaf) ? statistics : undefined;
  const min = statistics?.min ?? old?.deprecatedMin;
  const max = statistics?.max ?? old?.deprecatedMax;
  return { ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) };
}

function isSignedOrder({ type, logicalType }: LeafColumn): boolean {
  if (logicalType?.kind === 'INTEGER') return logicalType.signed;
  const bytes = type === Physical.BYTE_ARRAY || type === Physical.FIXED_LEN_BYTE_ARRAY;
  return type !== Physical.INT96 && !bytes;
}

/** The bounds of all chunks together; undefined when one with values has none, or when the type has no order. */
export function columnBounds(
  leaf: LeafColumn,
  chunks: readonly ColumnChunk[],
): { readonly min: Uint8Array; readonly max: Uint8Array } | undefined {
  let bounds: { min: Uint8Array; max: Uint8Array } | undefined;
  for (const chunk of chunks) {
    if (chunk.numValues === (chunk.statistics?.nullCount ?? 0)) continue; // nulls only
    const { min, max } = chunkBounds(leaf, chunk);
    const lower = min === undefined ? undefined : keyOf(leaf, min);
    const upper = max === undefined ? undefined : keyOf(leaf, max);
    if (lower === undefined || upper === undefined) return undefined;
    if (bounds === undefined) bounds = { min: min!, max: max! };
    if (isLess(lower, keyOf(leaf, bounds.min)!)) bounds.min = min!;
    if (isLess(keyOf(leaf, bounds.max)!, upper)) bounds.max = max!;
  }
  return bounds;
}

type Key = number | bigint | Uint8Array;

function isLess(a: Key, b: Key): boolean {
  return a instanceof Uint8Array ? Buffer.compare(a, b as Uint8Array) < 0 : a < (b as number | bigint);
}

/** Something that compares like the value; undefined where the bytes are no value of the type, or there is no order. */
function keyOf({ type, typeLength, logicalType }: LeafColumn, bytes: Uint8Array): Key | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const unsigned = logicalType?.kind === 'INTEGER' && !logicalType.signed;
  switch (type) {
    case Physical.BOOLEAN:
      return bytes.length === 1 ? bytes[0] : undefined;
    case Physical.INT32:
      if (bytes.length !== 4) return undefined;
      return unsigned ? view.getUint32(0, true) : view.getInt32(0, true);
    case Physical.INT64:
      if (bytes.length !== 8) return undefined;
      return unsigned ? view.getBigUint64(0, true) : view.getBigInt64(0, true);
    case Physical.FLOAT:
      return bytes.length === 4 ? view.getFloat32(0, true) : undefined;
    case Physical.DOUBLE:
      return bytes.length === 8 ? view.getFloat64(0, true) : undefined;
    case Physical.BYTE_ARRAY:
    case Physical.FIXED_LEN_BYTE_ARRAY:
      if (type === Physical.FIXED_LEN_BYTE_ARRAY && bytes.length !== typeLength) return undefined;
      return bytesKey(logicalType?.kind, bytes, view);
    default:
      return undefined;
  }
}

function bytesKey(kind: string | undefined, bytes: Uint8Array, view: DataView): Key | undefined {
  switch (kind) {
    case 'DECIMAL':
      if (bytes.length === 0) return 0n;
      return BigInt.asIntN(bytes.length * 8, BigInt(`0x${Buffer.from(bytes).toString('hex')}`));
    case 'FLOAT16':
      return view.getFloat16(0, true);
    case 'INTERVAL':
    case 'GEOMETRY':
    case 'GEOGRAPHY':
    case 'VARIANT':
      return undefined;
    default:
      return bytes;
  }
}
