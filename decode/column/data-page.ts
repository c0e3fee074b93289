/**
 * An open data page: its sections, and where in them levels and values lie. V1 pages hold repetition levels,
 * definition levels and values in one compressed section, each kind of levels after its length; V2 pages have the
 * levels uncompressed before the values, their lengths in the header. The deprecated BIT_PACKED levels of old writers
 * are turned into hybrid runs here, so that nothing after knows of them.
 */
import { DecodeError } from '../errors.ts';
import { Codec, Encoding, PageType } from '../format/enums.ts';
import type { PageHeader } from '../format/page-header.ts';
import type { BitPackedLevels } from './bit-packed-levels.ts';
import type { DecodeEnvironment } from './environment.ts';
import type { PageBody } from './page-body.ts';
import type { Section } from './section.ts';
import type { ChunkSpec } from './spec.ts';
import { readU32 } from './values/page-values.ts';

/** Addresses of hybrid runs of levels, `width` bits each. */
export interface LevelRange {
  readonly start: number;
  readonly end: number;
  readonly width: number;
}

/** Where levels and values lie once the start of a page is there; addresses. */
export interface PageLayout {
  readonly repetition: LevelRange;
  readonly definition: LevelRange;
  readonly values: number;
}

export interface PageSections {
  readonly body: PageBody;
  readonly values: Section;
  /** V2: repetition, then definition levels. */
  readonly levels: Section | undefined;
  /** V1: room for levels in BIT_PACKED, by kind. */
  readonly repetition: BitPackedLevels | undefined;
  readonly definition: BitPackedLevels | undefined;
}

/** Bits of a level up to `max`. */
export function levelWidth(max: number): number {
  return 32 - Math.clz32(max);
}

export class DataPage {
  readonly numValues: number;
  readonly encoding: number;
  /** The section that holds the values; in a V1 page it begins with the levels. */
  readonly values: Section;
  readonly #sections: PageSections;
  readonly #environment: DecodeEnvironment;
  readonly #maxRepetition: number;
  readonly #maxDefinition: number;
  readonly #repetitionBytes: number;
  readonly #codec: Codec;
  readonly #header: PageHeader;
  readonly #onClose: () => void;

  constructor(
    environment: DecodeEnvironment,
    spec: ChunkSpec,
    header: PageHeader,
    sections: PageSections,
    onClose: () => void,
  ) {
    this.numValues = header.numValues;
    this.encoding = header.encoding;
    this.values = sections.values;
    this.#sections = sections;
    this.#environment = environment;
    this.#maxRepetition = spec.nested?.maxRepetitionLevel ?? 0;
    this.#maxDefinition = spec.maxDefinitionLevel;
    this.#repetitionBytes = header.repetitionBytes;
    this.#codec = codecOf(header, spec);
    this.#header = header;
    this.#onClose = onClose;
  }

  advance(): void {
    this.#sections.body.advance();
    this.#sections.levels?.advance();
    this.values.advance();
  }

  /** True when every byte of the page has arrived and decompressed. */
  get isComplete(): boolean {
    return this.values.isComplete && (this.#sections.levels === undefined || this.#sections.levels.isComplete);
  }

  /** Address up to which bytes of repetition levels are final. */
  get repetitionMark(): number {
    return this.#sections.repetition?.end ?? (this.#sections.levels ?? this.values).mark;
  }

  /** The same for definition levels. */
  get levelMark(): number {
    return this.#sections.definition?.end ?? (this.#sections.levels ?? this.values).mark;
  }

  /** Undefined until the lengths of V1 levels have arrived. Throws LEVELS. */
  layout(): PageLayout | undefined {
    const { levels } = this.#sections;
    if (levels !== undefined) {
      const middle = levels.start + this.#repetitionBytes;
      return {
        repetition: { start: levels.start, end: middle, width: levelWidth(this.#maxRepetition) },
        definition: { start: middle, end: levels.end, width: levelWidth(this.#maxDefinition) },
        values: this.values.start,
      };
    }
    const repetition = this.#range(this.values.start, this.#maxRepetition, this.#sections.repetition);
    if (repetition === undefined) return undefined;
    const definition = this.#range(repetition.next, this.#maxDefinition, this.#sections.definition);
    if (definition === undefined) return undefined;
    return { repetition, definition, values: definition.next };
  }

  /** Levels of a V1 page that begin at `at`, and where they end in the page. */
  #range(
    at: number,
    max: number,
    bitPacked: BitPackedLevels | undefined,
  ): (LevelRange & { readonly next: number }) | undefined {
    const { values } = this;
    const width = levelWidth(max);
    if (max === 0) return { start: at, end: at, width, next: at };
    if (bitPacked !== undefined) {
      if (bitPacked.bytes > values.end - at) throw new DecodeError('LEVELS', 'the page ends inside its levels');
      if (values.mark - at < bitPacked.bytes) return undefined;
      return { ...bitPacked.load(at), next: at + bitPacked.bytes };
    }
    if (values.mark - at < 4) {
      if (values.isComplete) throw new DecodeError('LEVELS', 'the page ends before its levels');
      return undefined;
    }
    const length = readU32(this.#environment.pool, at);
    const start = at + 4;
    if (length > values.end - start) {
      throw new DecodeError('LEVELS', `levels of ${length} bytes in a page of ${values.end - values.start}`);
    }
    return { start, end: start + length, width, next: start + length };
  }

  /** `isDecoded`: all of its values are out. */
  close(isDecoded: boolean): void {
    if (isDecoded) {
      const { encoding, numValues, compressedSize, uncompressedSize } = this.#header;
      this.#environment.tally?.addPage(encoding, this.#codec, numValues, compressedSize, uncompressedSize);
    }
    this.#sections.repetition?.close();
    this.#sections.definition?.close();
    this.#sections.levels?.close();
    this.values.close();
    this.#onClose();
  }
}

/** What the values of a data page are compressed with: V2 pages may go without. */
export function codecOf(header: PageHeader, spec: ChunkSpec): Codec {
  return header.type === PageType.DATA_PAGE_V2 && !header.isCompressed ? Codec.UNCOMPRESSED : spec.codec;
}

/** True when a V1 page's levels of a column with that maximum are in the deprecated encoding. */
export function isBitPacked(encoding: number, max: number): boolean {
  return max > 0 && encoding === Encoding.BIT_PACKED;
}
