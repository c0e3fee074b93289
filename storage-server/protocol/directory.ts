/**
 * The directory of a region: which file lies where, in which version. In front of it its size as u64, then a Thrift
 * compact structure, then the structure's CRC-32; the size counts both. Offsets count from the data start, which
 * is the first aligned address behind the directory, so that they do not depend on the directory's own length.
 *
 * A directory from outside is not trusted: names, alignment, overlaps and sums are checked before it is used.
 */
import { crc32 } from 'node:zlib';
import { ProtocolError } from './errors.ts';
import {
  ALIGN_BYTES_MAX,
  ALIGN_BYTES_MIN,
  DIRECTORY_BYTES_MAX,
  DIRECTORY_CRC_BYTES,
  DIRECTORY_ENTRIES_MAX,
  DIRECTORY_SIZE_BYTES,
  DIRECTORY_VERSION,
  ETAG_BYTES_MAX,
  GENERATION_BYTES,
} from './limits.ts';
import { addExact, alignUp, readU64, viewOf, writeU64 } from './number.ts';
import { checkPath, checkPathsTogether, sortedByPath } from './path.ts';
import {
  readStruct,
  required,
  type StructValue,
  structTable,
  thriftBinary,
  thriftI32,
  thriftI64,
  thriftList,
  thriftString,
  thriftStruct,
  writeStruct,
} from './thrift-table.ts';

export interface DirectoryEntry {
  readonly path: string;
  /** From the data start, a multiple of the alignment. */
  readonly offset: number;
  readonly length: number;
  readonly etag: string;
  /** Modification time, milliseconds since 1970. */
  readonly modifiedMs: number;
}

export interface Directory {
  readonly generation: Uint8Array;
  readonly alignBytes: number;
  readonly entries: readonly DirectoryEntry[];
  /** Region address at which offsets start. */
  readonly dataStart: number;
  readonly regionLength: number;
}

const ENTRY = structTable('Entry', {
  path: required(1, thriftString),
  offset: required(2, thriftI64),
  length: required(3, thriftI64),
  etag: required(4, thriftString),
  modifiedMs: required(5, thriftI64),
});

const DIRECTORY = structTable('Directory', {
  version: required(1, thriftI32),
  generation: required(2, thriftBinary),
  alignBytes: required(3, thriftI32),
  entries: required(4, thriftList(thriftStruct(ENTRY))),
});

/** Lays files out in a region, in the order of their paths' bytes, and checks that a reader will accept them. */
export function planDirectory(
  generation: Uint8Array,
  alignBytes: number,
  files: readonly Omit<DirectoryEntry, 'offset'>[],
): { directory: Directory; prefix: Uint8Array } {
  checkAlignment(alignBytes);
  let end = 0;
  const entries = sortedByPath(files).map(({ path, length, etag, modifiedMs }) => {
    const offset = alignUp(end, alignBytes, 'region');
    end = addExact(offset, length, 'region');
    return { path, offset, length, etag, modifiedMs };
  });
  const prefix = encodeDirectory(generation, alignBytes, entries);
  const dataStart = alignUp(prefix.byteLength, alignBytes, 'region');
  const regionLength = addExact(dataStart, alignUp(end, alignBytes, 'region'), 'region');
  const directory = { generation, alignBytes, entries, dataStart, regionLength };
  checkEntries(directory);
  return { directory, prefix };
}

/** The size, the structure and its checksum: the first bytes of a region. */
function encodeDirectory(generation: Uint8Array, alignBytes: number, entries: DirectoryEntry[]): Uint8Array {
  const structure = writeStruct(DIRECTORY, { version: DIRECTORY_VERSION, generation, alignBytes, entries });
  const size = structure.byteLength + DIRECTORY_CRC_BYTES;
  if (size > DIRECTORY_BYTES_MAX)
    throw new ProtocolError('LENGTH', `a directory of ${size} bytes for ${entries.length} files`);
  const prefix = new Uint8Array(DIRECTORY_SIZE_BYTES + size);
  const view = viewOf(prefix);
  writeU64(view, 0, size, 'directory size');
  prefix.set(structure, DIRECTORY_SIZE_BYTES);
  view.setUint32(DIRECTORY_SIZE_BYTES + structure.byteLength, crc32(structure), true);
  return prefix;
}

/** The directory's size from the first eight bytes of a region. Throws LENGTH or NUMBER. */
export function parseDirectorySize(bytes: Uint8Array, regionLength: number): number {
  if (bytes.byteLength !== DIRECTORY_SIZE_BYTES) throw new ProtocolError('LENGTH', 'directory size is eight bytes', 0);
  const size = readU64(viewOf(bytes), 0, 'directory size', 0);
  if (size <= DIRECTORY_CRC_BYTES || size > DIRECTORY_BYTES_MAX || size > regionLength - DIRECTORY_SIZE_BYTES) {
    throw new ProtocolError('LENGTH', `directory size ${size} in a region of ${regionLength} bytes`, 0);
  }
  return size;
}

/** The directory from the bytes behind its size. Throws CHECKSUM, VERSION, THRIFT, NAME, DIRECTORY, LENGTH or NUMBER. */
export function parseDirectory(bytes: Uint8Array, regionLength: number): Directory {
  if (bytes.byteLength <= DIRECTORY_CRC_BYTES)
    throw new ProtocolError('LENGTH', `directory of ${bytes.byteLength} bytes`);
  const structure = bytes.subarray(0, bytes.byteLength - DIRECTORY_CRC_BYTES);
  const crc = viewOf(bytes).getUint32(structure.byteLength, true);
  if (crc32(structure) !== crc) {
    const address = DIRECTORY_SIZE_BYTES + structure.byteLength;
    throw new ProtocolError('CHECKSUM', 'directory does not match its checksum', address);
  }
  const { value, bytesRead } = readStruct(DIRECTORY, structure);
  if (value.version !== DIRECTORY_VERSION) {
    throw new ProtocolError('VERSION', `directory version ${value.version}, this client reads ${DIRECTORY_VERSION}`);
  }
  if (bytesRead !== structure.byteLength) throw new ProtocolError('DIRECTORY', 'bytes behind the structure');
  return checkedDirectory(value, DIRECTORY_SIZE_BYTES + bytes.byteLength, regionLength);
}

function checkedDirectory(value: StructValue<typeof DIRECTORY>, prefixBytes: number, regionLength: number): Directory {
  if (value.generation.byteLength !== GENERATION_BYTES) {
    throw new ProtocolError('LENGTH', `generation of ${value.generation.byteLength} bytes`);
  }
  checkAlignment(value.alignBytes);
  const directory = {
    generation: value.generation,
    alignBytes: value.alignBytes,
    entries: value.entries,
    dataStart: alignUp(prefixBytes, value.alignBytes, 'data start'),
    regionLength,
  };
  checkEntries(directory);
  return directory;
}

function checkAlignment(alignBytes: number): void {
  const valid = alignBytes >= ALIGN_BYTES_MIN && alignBytes <= ALIGN_BYTES_MAX && (alignBytes & (alignBytes - 1)) === 0;
  if (!Number.isInteger(alignBytes) || !valid) {
    throw new ProtocolError(
      'DIRECTORY',
      `alignment ${alignBytes} is not a power of two from ${ALIGN_BYTES_MIN} to ${ALIGN_BYTES_MAX}`,
    );
  }
}

function checkEntries(directory: Directory): void {
  const { entries, alignBytes, dataStart, regionLength } = directory;
  if (entries.length > DIRECTORY_ENTRIES_MAX)
    throw new ProtocolError('LENGTH', `${entries.length} files in one region`);
  for (const entry of entries) {
    checkPath(entry.path);
    const refuse = (reason: string): never => refuseEntry(directory, entry, reason);
    if (entry.offset < 0 || entry.length < 0) refuse('has a negative offset or length');
    if (entry.offset % alignBytes !== 0) refuse(`starts at ${entry.offset}, not aligned to ${alignBytes}`);
    const end = addExact(addExact(dataStart, entry.offset, 'end of file'), entry.length, 'end of file');
    if (end > regionLength) refuse(`ends at ${end} in a region of ${regionLength} bytes`);
    if (entry.etag === '' || Buffer.byteLength(entry.etag) > ETAG_BYTES_MAX) refuse('has no usable etag');
  }
  checkPathsTogether(entries.map((entry) => entry.path));
  const byOffset = [...entries].sort((a, b) => a.offset - b.offset || a.length - b.length);
  let end = 0;
  for (const entry of byOffset) {
    if (entry.offset < end) refuseEntry(directory, entry, `overlaps another file at ${entry.offset}`);
    end = entry.offset + entry.length;
  }
}

function refuseEntry({ dataStart }: Directory, { path, offset }: DirectoryEntry, reason: string): never {
  throw new ProtocolError('DIRECTORY', `${JSON.stringify(path)} ${reason}`, Math.max(0, dataStart + offset));
}

/**
 * Checks that a region ends where a server would end it: behind its last file, aligned. For a packed file, of which the
 * length is not the word of a server. Throws LENGTH.
 */
export function checkPackedLength({ entries, alignBytes, dataStart, regionLength }: Directory): void {
  let end = 0;
  for (const { offset, length } of entries) end = Math.max(end, offset + length);
  const expected = addExact(dataStart, alignUp(end, alignBytes, 'region'), 'region');
  if (regionLength === expected) return;
  const reason = `the file has ${regionLength} bytes, what its directory says takes ${expected}`;
  throw new ProtocolError('LENGTH', reason, Math.min(regionLength, expected));
}

/** What is wrong with a packed file, and where in it: for the end of a message that begins with its name. */
export function packedFault({ address = DIRECTORY_SIZE_BYTES, reason }: ProtocolError): string {
  return `no packed region, or a damaged one, at byte ${address}: ${reason}`;
}

/** Region address of bytes [start, start + length) of a file. Throws RANGE if they are not all inside it. */
export function regionAddress(directory: Directory, entry: DirectoryEntry, start: number, length: number): number {
  const valid = Number.isSafeInteger(start) && Number.isSafeInteger(length) && start >= 0 && length >= 0;
  if (!valid || start > entry.length || length > entry.length - start) {
    throw new ProtocolError(
      'RANGE',
      `${length} bytes at ${start} of ${JSON.stringify(entry.path)}, which has ${entry.length}`,
    );
  }
  return directory.dataStart + entry.offset + start;
}

/** The entries in the order of their paths' bytes. */
export function sortedEntries(directory: Directory): DirectoryEntry[] {
  return sortedByPath(directory.entries);
}
