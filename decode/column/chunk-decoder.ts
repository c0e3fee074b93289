/**
 * One column chunk, decoded as it arrives: pages in order, each through header, decompression, levels and values,
 * into windows of rows that leave as segments. Synchronous and resumable: `step` consumes what is there up to the
 * input's mark and says what it waits for. It reads no clock and awaits nothing.
 *
 * Flat columns are decoded here; of nested ones, whose rows are not their entries, `nested/` does the same.
 * Specification: parquet-format, Encodings.md and the "Data pages" section of README.md.
 */
import { checkCodec } from '../codec/codec.ts';
import { DecodeError } from '../errors.ts';
import { Physical } from '../format/enums.ts';
import { DONE, FULL, HYBRID, LEVELS, NEED } from '../kernels/kernels.ts';
import { ChunkInput } from './chunk-input.ts';
import type { DataPage } from './data-page.ts';
import { checkUtf8, type Dictionary, fixedWidth } from './dictionary.ts';
import type { DecodeEnvironment } from './environment.ts';
import { freeSegment } from './free-segment.ts';
import { kernelError } from './kernel-error.ts';
import { NestedPages } from './nested/nested-decoder.ts';
import { PageReader } from './page-reader.ts';
import type { ChunkSpec, Segment, SegmentLayout, StepResult } from './spec.ts';
import { openPageValues } from './values/open-values.ts';
import { NO_MEMORY, type PageContext, type PageValues } from './values/page-values.ts';
import { expandRoomBytes, placeOfWindow, Window, type WindowShape } from './window.ts';

/** Kernel states of a decoder, in one slab: offsets in bytes. */
const STATES = { block: 0, levels: 64, boolRuns: 128, bytes: 192, utf8: 256, delta: 320, size: 1088 } as const;

/** Bytes: room for values that follow in later pages, beyond what the page at hand needs. */
const DATA_AHEAD_BYTES_MAX = 4 << 20;

interface OpenPage {
  readonly page: DataPage;
  readonly context: PageContext;
  readonly values: PageValues;
  levelsStarted: boolean;
  rowsLeft: number;
}

export class ChunkDecoder {
  readonly input: ChunkInput;
  readonly #environment: DecodeEnvironment;
  readonly #spec: ChunkSpec;
  readonly #pages: PageReader;
  readonly #width: number;
  /** Takes the place of everything below for a nested column. */
  readonly #nested: NestedPages | undefined;
  #states: number;
  #hybrid = 0;
  #open: OpenPage | undefined;
  #window: Window | undefined;
  #windows = 0;
  #carry: ReturnType<Window['split']>;
  #finishing = false;
  #segment: Segment | undefined;
  #dictionaryGivenOut = false;
  /** Values (nulls counted) given to windows so far. */
  #valuesDone = 0;
  #bytesNeeded = 0;

  /** Throws UNSUPPORTED; MEMORY is no error here: a decoder that got no state slab says so at its first step. */
  constructor(environment: DecodeEnvironment, spec: ChunkSpec) {
    this.#environment = environment;
    this.#spec = spec;
    try {
      checkCodec(spec.codec);
    } catch (error) {
      throw this.#located(error, 0);
    }
    this.#width = spec.physical === Physical.BYTE_ARRAY || spec.physical === Physical.BOOLEAN ? 0 : fixedWidth(spec);
    this.#states = environment.pool.allocate(STATES.size);
    this.input = new ChunkInput(environment.pool);
    this.#pages = new PageReader(environment, spec, this.input);
    if (spec.nested !== undefined) this.#nested = new NestedPages(environment, spec, spec.nested, this.#pages);
  }

  /** True when every value has been given out: the next step would answer 'end'. */
  get isDone(): boolean {
    if (this.#nested !== undefined) return this.#segment === undefined && this.#nested.isDone;
    return (
      this.#segment === undefined &&
      this.#window === undefined &&
      this.#carry === undefined &&
      this.#open === undefined &&
      this.#valuesDone === this.#spec.numValues
    );
  }

  /** Does what the arrived input allows. Throws DecodeError located in the column and the file. */
  step(): StepResult {
    try {
      return this.#step();
    } catch (error) {
      throw this.#located(error, this.#pages.pageStart);
    }
  }

  /** An error of ours with the column and the place of chunk byte `at` in the file. */
  #located(error: unknown, at: number): unknown {
    if (!(error instanceof DecodeError)) return error;
    return error.located({ column: this.#spec.columnName, offset: this.#spec.fileOffset + at });
  }

  /** The finished segment after `step` answered 'segment'. */
  takeSegment(): Segment {
    const segment = this.#segment;
    if (segment === undefined) throw new Error('no segment is ready');
    this.#segment = undefined;
    if (segment.dictionary !== undefined) this.#dictionaryGivenOut = true;
    return segment;
  }

  #step(): StepResult {
    const { pool } = this.#environment;
    if (this.#states === 0) {
      this.#states = pool.allocate(STATES.size);
      if (this.#states === 0) return 'memory';
    }
    if (this.#nested !== undefined) return this.#stepNested(this.#nested);
    for (;;) {
      if (this.#segment !== undefined) return 'segment';
      if (this.#finishing) {
        if (!this.#finishWindow()) return 'memory';
        continue;
      }
      const result = this.#open === undefined ? this.#nextPage() : this.#stepPage(this.#open);
      if (result !== 'go') return result;
    }
  }

  #stepNested(nested: NestedPages): StepResult {
    if (this.#segment !== undefined) return 'segment';
    const at = this.#states;
    const result = nested.step({
      block: at + STATES.block,
      boolRuns: at + STATES.boolRuns,
      bytes: at + STATES.bytes,
      delta: at + STATES.delta,
      utf8: at + STATES.utf8,
    });
    if (typeof result === 'string') return result;
    this.#segment = result;
    return 'segment';
  }

  #nextPage(): StepResult | 'go' {
    const spec = this.#spec;
    if (this.#window !== undefined && this.#window.rows > 0 && this.#window.room === 0) {
      this.#finishing = true;
      return 'go';
    }
    if (this.#valuesDone === spec.numValues) {
      if (this.#window !== undefined && this.#window.rows > 0) {
        this.#finishing = true;
        return 'go';
      }
      return 'end';
    }
    const states = { bytes: this.#states + STATES.bytes, utf8: this.#states + STATES.utf8 };
    const page = this.#pages.next(this.#states + STATES.block, states, this.#place);
    if (page === 'input' || page === 'memory') return page;
    if (page.numValues > spec.numValues - this.#valuesDone) {
      page.close(false);
      throw new DecodeError('PAGE_HEADER', `page of ${page.numValues} values`, {
        expected: `at most ${spec.numValues - this.#valuesDone}, what is left of the chunk's ${spec.numValues}`,
      });
    }
    return this.#openPage(page);
  }

  /** The end of the window's values, when a whole page of them fits there. */
  readonly #place = (count: number, bytes: number): number => {
    if (this.#width === 0 || this.#carry !== undefined) return 0;
    if (this.#window === undefined && !this.#openWindow('fixed', () => 0)) return 0;
    const window = this.#window!;
    if (window.shape.layout !== 'fixed' || window.dense !== window.valid || count > window.room) return 0;
    if (bytes > (window.shape.rowsMax - window.dense) * this.#width) return 0;
    return window.values + window.dense * this.#width;
  };

  #openPage(page: DataPage): StepResult | 'go' {
    const { pool, kernels } = this.#environment;
    const dictionary = this.#pages.dictionary;
    if (dictionary !== undefined && this.#hybrid === 0) {
      this.#hybrid = pool.allocate(HYBRID.size);
      if (this.#hybrid === 0) {
        this.#pages.putBack(page);
        return 'memory';
      }
    }
    const states = {
      boolRuns: this.#states + STATES.boolRuns,
      bytes: this.#states + STATES.bytes,
      hybrid: this.#hybrid,
      delta: this.#states + STATES.delta,
    };
    this.#open = {
      page,
      context: { pool, kernels, states, section: page.values, start: 0, width: this.#width },
      values: NO_VALUES,
      levelsStarted: false,
      rowsLeft: page.numValues,
    };
    return 'go';
  }

  #stepPage(open: OpenPage): StepResult | 'go' {
    const spec = this.#spec;
    const settled = this.#window === undefined || this.#window.dense === this.#window.valid;
    open.page.advance();
    if (open.rowsLeft === 0 && settled && this.#carry === undefined) {
      // bytes after the last value may be bad too: what a page comes to must not depend on how it arrives
      if (!open.page.isComplete) return 'input';
      open.values.end?.();
      this.#closePage(open, true);
      return 'go';
    }
    if (!open.levelsStarted) {
      if (!this.#startPage(open)) return 'input';
    }
    const { values } = open;
    if (this.#window !== undefined && this.#window.shape.layout !== values.layout && this.#window.rows > 0) {
      this.#finishing = true;
      return 'go';
    }
    if (this.#window === undefined && !this.#openWindow(values.layout, (rows) => this.#dataRoom(open, rows))) {
      return 'memory';
    }
    const window = this.#window!;
    if (window.dense < window.valid) {
      const code = values.decode(window, window.valid - window.dense);
      if (code === NEED) return 'input';
      if (code === NO_MEMORY) return 'memory';
      if (code === FULL) {
        this.#bytesNeeded = values.needBytes?.() ?? 0;
        this.#carry = window.split();
        if (window.rows > 0) this.#finishing = true;
        else this.#dropWindow();
        return 'go';
      }
    }
    // the page first: it may have lent the window's bytes
    if (open.rowsLeft === 0) return 'go';
    if (window.room === 0) {
      this.#finishing = true;
      return 'go';
    }
    const take = Math.min(window.room, open.rowsLeft);
    if (spec.maxDefinitionLevel === 0) {
      window.rows += take;
      window.valid += take;
      open.rowsLeft -= take;
      this.#valuesDone += take;
      return 'go';
    }
    return this.#decodeLevels(open, window, take);
  }

  /** Sets up levels and values as soon as the page says where they lie; false when that has not arrived. */
  #startPage(open: OpenPage): boolean {
    const { page, context } = open;
    const layout = page.layout();
    if (layout === undefined) return false;
    const { u32 } = this.#environment.pool;
    if (this.#spec.maxDefinitionLevel > 0) {
      const word = (this.#states + STATES.levels) >>> 2;
      u32[word + (LEVELS.ip >>> 2)] = layout.definition.start;
      u32[word + (LEVELS.srcEnd >>> 2)] = layout.definition.end;
      u32.fill(0, word + (LEVELS.runKind >>> 2), word + (LEVELS.pendingBits >>> 2));
      u32[word + 11] = 0;
    }
    const started: PageContext = { ...context, start: layout.values };
    const dictionary = this.#pages.dictionary;
    const values = openPageValues(started, page.encoding, this.#spec.physical, dictionary);
    Object.assign(open, { context: started, values, levelsStarted: true });
    return true;
  }

  #decodeLevels(open: OpenPage, window: Window, take: number): StepResult | 'go' {
    const { pool, kernels } = this.#environment;
    const { u32 } = pool;
    const state = this.#states + STATES.levels;
    const word = state >>> 2;
    u32[word + (LEVELS.wanted >>> 2)] = take;
    const end = u32[word + (LEVELS.srcEnd >>> 2)]!;
    const mark = open.page.levelMark;
    if (mark < u32[word + (LEVELS.ip >>> 2)]!) return 'input'; // what comes before is still arriving
    const code = kernels.levelBitmap(state, Math.min(mark, end));
    if (code < 0) throw kernelError('LEVELS', code, 'definition levels');
    const rows = take - u32[word + (LEVELS.wanted >>> 2)]!;
    window.rows += rows;
    window.valid = u32[word + (LEVELS.ones >>> 2)]!;
    open.rowsLeft -= rows;
    this.#valuesDone += rows;
    return code === NEED ? 'input' : 'go';
  }

  #openWindow(layout: SegmentLayout, dataRoom: (rows: number) => number): boolean {
    const { pool, kernels } = this.#environment;
    const spec = this.#spec;
    const carried = this.#carry?.rows ?? 0;
    // the count of the footer only makes the window smaller, never larger
    const rowsMax = Math.min(spec.windowRows, carried + spec.numValues - this.#valuesDone);
    const expand = layout === 'indices' && spec.bytesOutput === 'values';
    const shape: WindowShape = {
      layout,
      width: layout === 'fixed' ? this.#width : layout === 'bits' ? 1 : 4,
      optional: spec.maxDefinitionLevel > 0,
      rowsMax,
      dataBytes: layout === 'bytes' ? dataRoom(rowsMax) : expand ? expandRoomBytes(rowsMax) : 0,
      expand,
      keepDense: spec.dense === true,
      ...placeOfWindow(spec, this.#windows++),
    };
    this.#window = Window.open(pool, kernels, shape, this.#states + STATES.levels);
    if (this.#window === undefined) return false;
    if (this.#carry !== undefined) this.#window.accept(this.#carry);
    this.#carry = undefined;
    this.#bytesNeeded = 0;
    return true;
  }

  /** Bytes of room for the data of byte arrays: what this page can fill, an estimate for the pages after it. */
  #dataRoom(open: OpenPage, rows: number): number {
    const { section } = open.context;
    const inPage = section.end - open.context.start;
    const pageRows = Math.max(1, open.page.numValues);
    const here = rows >= pageRows ? inPage : Math.min(inPage, Math.ceil((inPage / pageRows) * rows * 1.25) + 1024);
    const average = this.#spec.uncompressedBytes / Math.max(1, this.#spec.numValues);
    const ahead = Math.min(DATA_AHEAD_BYTES_MAX, Math.max(0, rows - open.rowsLeft) * average);
    return Math.max(64, this.#bytesNeeded, Math.ceil(here + ahead));
  }

  #finishWindow(): boolean {
    const window = this.#window!;
    this.#open?.values.leaveWindow?.();
    const { kernels, pool } = this.#environment;
    const dictionary: Dictionary | undefined = this.#pages.dictionary;
    let dataUsed = window.dataStart;
    if (window.shape.layout === 'bytes') {
      dataUsed += pool.u32[(window.values + window.dense * 4) >>> 2]!;
      if (this.#spec.utf8) {
        const scratch = this.#states + STATES.utf8;
        checkUtf8(kernels, window.values, window.dense, window.dataStart, dataUsed, scratch);
      }
    }
    const segment = window.finish(dataUsed, dictionary?.bytes);
    if (segment === undefined) return false;
    this.#segment = segment;
    if (window.isSpent) {
      this.#window = undefined;
      this.#finishing = false;
      this.#closeFinishedPage();
    }
    return true;
  }

  /** A page that has nothing more to give is checked and closed before its last segment goes out. */
  #closeFinishedPage(): void {
    const open = this.#open;
    if (open === undefined || open.rowsLeft > 0 || this.#carry !== undefined || !open.page.isComplete) return;
    open.values.end?.();
    this.#closePage(open, true);
  }

  #dropWindow(): void {
    this.#open?.values.leaveWindow?.();
    this.#window?.discard();
    this.#window = undefined;
  }

  #closePage(open: OpenPage, isDecoded: boolean): void {
    open.values.close();
    open.page.close(isDecoded);
    this.#open = undefined;
  }

  /** Gives everything back, except a dictionary that a segment given out names: it belongs to who got the segment. */
  close(): void {
    const { pool } = this.#environment;
    this.#nested?.close();
    if (this.#open !== undefined) this.#closePage(this.#open, false);
    // pages before the window: one that was put back may have bytes of it to restore
    this.#pages.close(this.#dictionaryGivenOut);
    this.#dropWindow();
    if (this.#segment !== undefined) freeSegment(pool, this.#segment);
    this.#segment = undefined;
    if (this.#states !== 0) pool.free(this.#states, STATES.size);
    if (this.#hybrid !== 0) pool.free(this.#hybrid, HYBRID.size);
    this.#states = 0;
    this.#hybrid = 0;
  }
}

/** Stands for the values of a page whose start has not arrived. */
const NO_VALUES: PageValues = { layout: 'fixed', decode: () => DONE, close: () => {} };
