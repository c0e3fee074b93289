/**
 * Walks the pages of a chunk: parses each header where it lies, checks it against the chunk, keeps the dictionary,
 * skips index pages, and opens data pages as sections. A header or body that lies across two pieces of input is
 * gathered. Pages with a CRC-32 are checked whole before a byte of them is used.
 */
import { crc32 } from 'node:zlib';
import { DecodeError } from '../errors.ts';
import { Codec, Encoding, nameOf, PageType } from '../format/enums.ts';
import { type PageHeader, parsePageHeader } from '../format/page-header.ts';
import { PLACED_PREFIX_BYTES_MAX } from '../limits.ts';
import { BitPackedLevels } from './bit-packed-levels.ts';
import type { ChunkInput } from './chunk-input.ts';
import { codecOf, DataPage, isBitPacked, levelWidth, type PageSections } from './data-page.ts';
import { checkDictionaryPage, type Dictionary, type DictionaryStates, loadDictionary } from './dictionary.ts';
import type { DecodeEnvironment } from './environment.ts';
import { PageBody } from './page-body.ts';
import { isStreamed, Section } from './section.ts';
import type { ChunkSpec } from './spec.ts';
import { readU32 } from './values/page-values.ts';

/** Bytes: the first try at a header that lies across two pieces; doubled while it is cut. */
const HEADER_TRY_BYTES = 4096;

/** Bytes: Snappy's length preamble, a literal's tag and the length of V1 levels; LZ4 has less before the latter. */
const BLOCK_START_BYTES = 5 + 1 + 4;

/**
 * Where a page of `count` PLAIN values in `bytes` bytes may be decompressed to, so that they need no copy: an address
 * with that many bytes of room, or 0.
 */
export type Place = (count: number, bytes: number) => number;

export class PageReader {
  /** Chunk offset of the page at hand, for messages. */
  pageStart = 0;
  dictionary: Dictionary | undefined;
  readonly #environment: DecodeEnvironment;
  readonly #spec: ChunkSpec;
  readonly #input: ChunkInput;
  /** Chunk offset of the next header. */
  #at = 0;
  #header: PageHeader | undefined;
  #body: PageBody | undefined;
  #checked = false;
  #dictionarySection: Section | undefined;
  #putBack: DataPage | undefined;

  constructor(environment: DecodeEnvironment, spec: ChunkSpec, input: ChunkInput) {
    this.#environment = environment;
    this.#spec = spec;
    this.#input = input;
  }

  /** The next data page, opened; dictionary and index pages before it are dealt with on the way. */
  next(blockState: number, states: DictionaryStates, place: Place): DataPage | 'input' | 'memory' {
    if (this.#putBack !== undefined) {
      const page = this.#putBack;
      this.#putBack = undefined;
      return page;
    }
    for (;;) {
      const header = this.#nextHeader();
      if (header === undefined) return 'input';
      const body = this.#at + header.headerBytes;
      const end = body + header.compressedSize;
      const isDictionary = header.type === PageType.DICTIONARY_PAGE;
      const isData = header.type === PageType.DATA_PAGE || header.type === PageType.DATA_PAGE_V2;
      if (isDictionary || (isData && header.numValues > 0)) {
        this.#body ??= PageBody.open(this.#environment.pool, this.#input, body, end);
        if (this.#body === undefined) return 'memory';
        this.#body.advance();
        if (!this.#checksumHolds(header, this.#body)) return 'input';
        if (isData) return this.#openData(header, this.#body, blockState, place);
        const result = this.#loadDictionary(header, this.#body, blockState, states);
        if (result !== undefined) return result;
      }
      this.#finishPage(end);
    }
  }

  /** Gives a page back that could not be worked on yet. */
  putBack(page: DataPage): void {
    this.#putBack = page;
  }

  #finishPage(end: number): void {
    this.#body?.close();
    this.#body = undefined;
    this.#at = end;
    this.#header = undefined;
    this.#checked = false;
    this.#input.release(end);
  }

  #nextHeader(): PageHeader | undefined {
    if (this.#header !== undefined) return this.#header;
    const input = this.#input;
    const at = this.#at;
    const spec = this.#spec;
    this.pageStart = at;
    if (at >= spec.byteLength) {
      throw new DecodeError('METADATA', 'the chunk ends before it has all of its values', {
        expected: `${spec.numValues} values`,
      });
    }
    const header = this.#parseHeader(at);
    if (header === undefined) {
      if (input.arrived < spec.byteLength) return undefined;
      throw new DecodeError('PAGE_HEADER', 'the chunk ends inside a page header');
    }
    if (header.compressedSize > spec.byteLength - at - header.headerBytes) {
      throw new DecodeError('PAGE_HEADER', `page of ${header.compressedSize} bytes passes the end of its chunk`, {
        expected: `at most ${spec.byteLength - at - header.headerBytes} bytes`,
      });
    }
    this.#header = header;
    return header;
  }

  #parseHeader(at: number): PageHeader | undefined {
    const input = this.#input;
    const arrived = input.arrived;
    if (at >= arrived) return undefined;
    const pieceEnd = Math.min(arrived, input.pieceEnd(at));
    const address = input.addressOf(at, pieceEnd);
    if (address !== 0) {
      const header = parsePageHeader(this.#environment.pool.u8, address, address + (pieceEnd - at));
      if (header !== undefined || pieceEnd === arrived) return header;
    }
    for (let bytes = HEADER_TRY_BYTES; ; bytes *= 2) {
      const end = Math.min(arrived, at + bytes);
      const header = parsePageHeader(input.slice(at, end), 0, end - at);
      if (header !== undefined || end === arrived) return header;
    }
  }

  /** False while the page has not arrived whole. Throws CHECKSUM. */
  #checksumHolds(header: PageHeader, body: PageBody): boolean {
    if (header.crc === undefined || !this.#environment.verifyChecksums || this.#checked) return true;
    if (!body.isComplete) return false;
    const crc = crc32(this.#environment.pool.u8.subarray(body.address, body.address + (body.to - body.from)));
    if (crc !== header.crc) {
      throw new DecodeError('CHECKSUM', `page CRC-32 is ${hex(crc)}`, { expected: hex(header.crc) });
    }
    this.#checked = true;
    return true;
  }

  #loadDictionary(
    header: PageHeader,
    body: PageBody,
    blockState: number,
    states: DictionaryStates,
  ): 'input' | 'memory' | undefined {
    const { pool, kernels } = this.#environment;
    const spec = this.#spec;
    if (this.dictionary !== undefined) throw new DecodeError('DICTIONARY', 'the chunk has a second dictionary page');
    checkDictionaryPage(spec, header.numValues, header.encoding, header.uncompressedSize);
    this.#dictionarySection ??= Section.open(pool, kernels, {
      body,
      from: body.from,
      to: body.to,
      codec: spec.codec,
      size: header.uncompressedSize,
      blockState,
    });
    const section = this.#dictionarySection;
    if (section === undefined) return 'memory';
    section.advance();
    if (!section.isComplete) return 'input';
    this.dictionary = loadDictionary(pool, kernels, spec, section, header.numValues, states);
    if (this.dictionary === undefined) return 'memory';
    this.#dictionarySection = undefined;
    this.#environment.tally?.addBytes(spec.codec, header.compressedSize, header.uncompressedSize);
    return undefined;
  }

  #openData(header: PageHeader, body: PageBody, blockState: number, place: Place): DataPage | 'memory' {
    const { pool, kernels } = this.#environment;
    const spec = this.#spec;
    const optional = spec.maxDefinitionLevel > 0;
    const isV2 = header.type === PageType.DATA_PAGE_V2;
    const levelBytes = isV2 ? header.definitionBytes + header.repetitionBytes : 0;
    if (levelBytes > header.compressedSize || levelBytes > header.uncompressedSize) {
      throw new DecodeError('PAGE_HEADER', `levels of ${levelBytes} bytes in a page of ${header.compressedSize}`);
    }
    const codec = codecOf(header, spec);
    const size = header.uncompressedSize - levelBytes;
    const compressed = { body, from: body.from + levelBytes, to: body.to, codec, size, blockState };
    const bitPacked = isBitPacked(header.definitionEncoding, spec.maxDefinitionLevel);
    const prefix = optional && !isV2 ? (bitPacked ? -1 : this.#levelPrefix(body, codec)) : 0;
    const placed = header.encoding === Encoding.PLAIN && this.#isPlaceable(codec, size, prefix);
    const target = placed ? place(header.numValues, size - prefix) : 0;
    const values = Section.open(
      pool,
      kernels,
      target === 0 ? compressed : { ...compressed, target: target - prefix, lent: prefix },
    );
    if (values === undefined) return 'memory';
    let sections: Omit<PageSections, 'body' | 'values'> | undefined;
    try {
      sections = this.#levelSections(header, body, isV2 ? levelBytes : -1, blockState);
    } catch (error) {
      values.close();
      throw error;
    }
    if (sections === undefined) {
      values.close();
      return 'memory';
    }
    return new DataPage(this.#environment, spec, header, { body, values, ...sections }, () =>
      this.#finishPage(body.to),
    );
  }

  /** V2 levels as a section of `v2Bytes`; room for V1 levels in the deprecated encoding. Undefined: no memory now. */
  #levelSections(
    header: PageHeader,
    body: PageBody,
    v2Bytes: number,
    blockState: number,
  ): Omit<PageSections, 'body' | 'values'> | undefined {
    const { pool, kernels } = this.#environment;
    if (v2Bytes >= 0) {
      const levels = Section.open(pool, kernels, {
        body,
        from: body.from,
        to: body.from + v2Bytes,
        codec: Codec.UNCOMPRESSED,
        size: v2Bytes,
        blockState,
      });
      return levels === undefined ? undefined : { levels, repetition: undefined, definition: undefined };
    }
    const { maxDefinitionLevel, nested } = this.#spec;
    const maxRepetitionLevel = nested?.maxRepetitionLevel ?? 0;
    const none = { levels: undefined, repetition: undefined, definition: undefined };
    const asBits = nested === undefined;
    const open = (encoding: number, max: number): BitPackedLevels | undefined | 'none' => {
      if (!isBitPacked(encoding, max)) return checkLevelEncoding(encoding, max);
      if (this.#spec.wrongBitPacking) {
        throw new DecodeError('LEVELS', 'BIT_PACKED levels of a writer that packed them from the wrong end');
      }
      const levels = { count: header.numValues, width: levelWidth(max), max, asBits };
      return BitPackedLevels.open(this.#environment, levels, header.uncompressedSize);
    };
    const repetition = open(header.repetitionEncoding, maxRepetitionLevel);
    if (repetition === undefined) return undefined;
    let definition: BitPackedLevels | undefined | 'none';
    try {
      definition = open(header.definitionEncoding, maxDefinitionLevel);
    } finally {
      if (definition === undefined && repetition !== 'none') repetition.close();
    }
    if (definition === undefined) return undefined;
    return {
      ...none,
      repetition: repetition === 'none' ? undefined : repetition,
      definition: definition === 'none' ? undefined : definition,
    };
  }

  /** What is not compressed is copied from where it lies. */
  #isPlaceable(codec: Codec, size: number, prefix: number): boolean {
    return codec !== Codec.UNCOMPRESSED && prefix >= 0 && prefix <= PLACED_PREFIX_BYTES_MAX && size > prefix;
  }

  /**
   * Bytes of the length and levels that a V1 page begins with, as far as its compressed bytes tell without
   * decompressing: blocks begin with a literal. -1 when they do not tell, as those of the library codecs.
   */
  #levelPrefix(body: PageBody, codec: Codec): number {
    if (!isStreamed(codec) || body.arrived - body.from < BLOCK_START_BYTES) return -1;
    const { u8 } = this.#environment.pool;
    let at = body.address;
    if (codec === Codec.LZ4_RAW) {
      const literals = u8[at]! >>> 4;
      const more = literals === 15 ? 1 : 0;
      if (literals < 4 || (more === 1 && u8[at + 1] === 255)) return -1;
      return 4 + readU32(this.#environment.pool, at + 1 + more);
    }
    while (u8[at]! >= 0x80 && at < body.address + 5) at++;
    const tag = u8[at + 1]!;
    if ((tag & 3) !== 0 || tag >>> 2 < 3 || tag >>> 2 >= 60) return -1;
    return 4 + readU32(this.#environment.pool, at + 2);
  }

  /** `keepDictionary`: a segment that was given out still names it. */
  close(keepDictionary: boolean): void {
    this.#putBack?.close(false);
    this.#dictionarySection?.close();
    this.#body?.close();
    this.#body = undefined;
    if (this.dictionary !== undefined && !keepDictionary) {
      this.#environment.pool.free(this.dictionary.slab, this.dictionary.slabBytes);
    }
    this.dictionary = undefined;
  }
}

/** Throws LEVELS for an encoding that levels can't have. */
function checkLevelEncoding(encoding: number, max: number): 'none' {
  if (max > 0 && encoding !== Encoding.RLE) {
    throw new DecodeError('LEVELS', `levels in encoding ${nameOf(Encoding, encoding)}`, {
      expected: 'RLE or BIT_PACKED',
    });
  }
  return 'none';
}

const hex = (value: number): string => `0x${value.toString(16).padStart(8, '0')}`;
