/**
 * A block: bytes [start, start + length) of one version of a file, in a file of its own. Pure: names and headers to bytes
 * and back. The name has what it takes to find a block, the header what it takes to believe it; nothing in either is used
 * before it is checked.
 *
 *     name    <32 hexadecimal digits of the version's key>-<start, base 36>-<length, base 36>
 *     file    0  "QANATBLK"
 *             8  u32 format version            12  u32 bytes of a piece
 *            16  the version's key: SHA-256 of source, path, etag and length
 *            48  u64 start
 *            56  u32 length                    60  u32 CRC-32 of bytes 0 to 60 and of the table
 *            64  u32 CRC-32 of each piece of the data
 *           256  the data
 *
 * Integers are little-endian. Every piece but the last has 64 KiB, so that part of a block can be checked alone.
 */
import { hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { BLOCK_BYTES_MAX, HEADER_BYTES, PIECE_BYTES } from './limits.ts';

const FORMAT_VERSION = 1;

/** The folder of blocks of this format within a cache's folder; what lies beside it is not touched. */
export const BLOCK_FOLDER = `blocks-${FORMAT_VERSION}`;

const MAGIC = Buffer.from('QANATBLK', 'latin1');
const TABLE_AT = 64;

/** Which bytes a block has; `version` is the first half of the version's key in hexadecimal digits. */
export interface BlockName {
  readonly version: string;
  readonly start: number;
  readonly length: number;
}

/** The key of one version of one file of one source: 32 bytes. */
export function versionKey(location: string, etag: string, length: number): Buffer {
  return hash('sha256', `${location}\0${etag}\0${length}`, 'buffer');
}

export function versionName(key: Buffer): string {
  return key.toString('hex', 0, 16);
}

export function formatName({ version, start, length }: BlockName): string {
  return `${version}-${start.toString(36)}-${length.toString(36)}`;
}

const NAME = /^([0-9a-f]{32})-(0|[1-9a-z][0-9a-z]{0,10})-([1-9a-z][0-9a-z]{0,4})$/;

/** undefined for what is no block's name. */
export function parseName(text: string): BlockName | undefined {
  const [, version, startText = '', lengthText = ''] = NAME.exec(text) ?? [];
  if (version === undefined) return undefined;
  const start = Number.parseInt(startText, 36);
  const length = Number.parseInt(lengthText, 36);
  return length <= BLOCK_BYTES_MAX && Number.isSafeInteger(start + length) ? { version, start, length } : undefined;
}

/** Fills the first HEADER_BYTES of `file`, which has the data behind them. */
export function writeHeader(file: Buffer, key: Buffer, start: number): void {
  const length = file.byteLength - HEADER_BYTES;
  const data = file.subarray(HEADER_BYTES);
  file.fill(0, 0, HEADER_BYTES);
  MAGIC.copy(file);
  file.writeUInt32LE(FORMAT_VERSION, 8);
  file.writeUInt32LE(PIECE_BYTES, 12);
  key.copy(file, 16);
  file.writeBigUInt64LE(BigInt(start), 48);
  file.writeUInt32LE(length, 56);
  const pieces = Math.ceil(length / PIECE_BYTES);
  for (let k = 0; k < pieces; k++) {
    file.writeUInt32LE(crc32(data.subarray(k * PIECE_BYTES, (k + 1) * PIECE_BYTES)), TABLE_AT + 4 * k);
  }
  file.writeUInt32LE(headerCrc(file, pieces), 60);
}

/** Whether a header is that of the block with this key, start and length. */
export function isHeaderOf(header: Buffer, key: Buffer, { start, length }: BlockName): boolean {
  return (
    header.subarray(0, 8).equals(MAGIC) &&
    header.readUInt32LE(8) === FORMAT_VERSION &&
    header.readUInt32LE(12) === PIECE_BYTES &&
    header.subarray(16, 48).equals(key) &&
    header.readBigUInt64LE(48) === BigInt(start) &&
    header.readUInt32LE(56) === length &&
    header.readUInt32LE(60) === headerCrc(header, Math.ceil(length / PIECE_BYTES))
  );
}

/** The checksum that piece `k` of the data must have. */
export function pieceCrc(header: Buffer, k: number): number {
  return header.readUInt32LE(TABLE_AT + 4 * k);
}

function headerCrc(header: Buffer, pieces: number): number {
  return crc32(header.subarray(TABLE_AT, TABLE_AT + 4 * pieces), crc32(header.subarray(0, 60)));
}
