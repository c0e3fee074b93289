/**
 * One column chunk of a nested column, decoded as it arrives: as `chunk-decoder.ts`, but with repetition levels, so
 * that a row may have any number of entries and go on in the next page. Levels go to the window in chunks, values
 * follow densely, and a finished window becomes Arrow's offsets and validity.
 * Specification: parquet-format, "Nested Encoding" (the Dremel model) and Encodings.md.
 */
import { DecodeError } from '../../errors.ts';
import { Physical } from '../../format/enums.ts';
import { FULL, HYBRID, NEED } from '../../kernels/kernels.ts';
import { LEVEL_CHUNK_ENTRIES, NESTED_ENTRIES_MAX } from '../../limits.ts';
import type { DataPage } from '../data-page.ts';
import { checkUtf8, fixedWidth } from '../dictionary.ts';
import type { DecodeEnvironment } from '../environment.ts';
import type { PageReader } from '../page-reader.ts';
import type { ChunkSpec, NestedShape, Segment, SegmentLayout, StepResult } from '../spec.ts';
import { openPageValues } from '../values/open-values.ts';
import { NO_MEMORY, type PageContext, type PageValues } from '../values/page-values.ts';
import { GatheredBytes } from './gathered-bytes.ts';
import { LEVEL_STATE_BYTES, LevelStream } from './level-stream.ts';
import { NestedWindow, type Overhang } from './nested-window.ts';

/** Kernel states beyond those of every decoder, in one slab: offsets in bytes. */
const STATES = {
  repetition: 0,
  definition: LEVEL_STATE_BYTES,
  /** By repetition level: the definition level that an element of its list has at least. */
  least: LEVEL_STATE_BYTES * 2,
  size: LEVEL_STATE_BYTES * 2 + 256,
} as const;

interface OpenPage {
  readonly page: DataPage;
  values: PageValues | undefined;
  entriesLeft: number;
}

/** Addresses of the kernel states that every column decoder has. */
export interface SharedStates {
  readonly block: number;
  readonly boolRuns: number;
  readonly bytes: number;
  readonly delta: number;
  readonly utf8: number;
}

export class NestedPages {
  readonly #environment: DecodeEnvironment;
  readonly #spec: ChunkSpec;
  readonly #nested: NestedShape;
  readonly #pages: PageReader;
  readonly #layout: SegmentLayout;
  readonly #width: number;
  #levelStates = 0;
  #hybrid = 0;
  #repetition: LevelStream | undefined;
  #definition: LevelStream | undefined;
  #open: OpenPage | undefined;
  #window: NestedWindow | undefined;
  #overhang: Overhang | undefined;
  #finishing = false;
  /** Entries whose levels were decoded. */
  #entriesDone = 0;
  /** Levels of the chunk at hand that were decoded already, when the page's end had not arrived. */
  #repetitionAhead = 0;
  #definitionAhead = 0;
  #sharedStates: SharedStates | undefined;

  constructor(environment: DecodeEnvironment, spec: ChunkSpec, nested: NestedShape, pages: PageReader) {
    this.#environment = environment;
    this.#spec = spec;
    this.#nested = nested;
    this.#pages = pages;
    const { physical } = spec;
    this.#layout = physical === Physical.BOOLEAN ? 'bits' : physical === Physical.BYTE_ARRAY ? 'bytes' : 'fixed';
    this.#width = this.#layout === 'fixed' ? fixedWidth(spec) : 0;
  }

  /** True when every row has been given out and nothing of the last page is left to be checked. */
  get isDone(): boolean {
    return (
      this.#window === undefined &&
      this.#overhang === undefined &&
      this.#open === undefined &&
      this.#entriesDone === this.#spec.numValues
    );
  }

  /** Goes on until something is missing or a segment is made. */
  step(states: SharedStates): Segment | Exclude<StepResult, 'segment'> {
    this.#sharedStates = states;
    if (!this.#begin()) return 'memory';
    for (;;) {
      if (this.#finishing) {
        const segment = this.#finishWindow();
        return segment ?? 'memory';
      }
      const result = this.#open === undefined ? this.#nextPage(states) : this.#stepPage(this.#open);
      if (result !== 'go') return result;
    }
  }

  #begin(): boolean {
    if (this.#levelStates !== 0) return true;
    this.#levelStates = this.#environment.pool.allocate(STATES.size);
    if (this.#levelStates === 0) return false;
    const { maxRepetitionLevel } = this.#nested;
    const { maxDefinitionLevel } = this.#spec;
    const stream = (offset: number, max: number, what: string): LevelStream | undefined =>
      max === 0 ? undefined : new LevelStream(this.#environment, this.#levelStates + offset, max, what);
    this.#repetition = stream(STATES.repetition, maxRepetitionLevel, 'repetition levels');
    this.#definition = stream(STATES.definition, maxDefinitionLevel, 'definition levels');
    const { u8 } = this.#environment.pool;
    const least = this.#levelStates + STATES.least;
    u8.fill(0, least, least + 256);
    for (const node of this.#nested.nodes) if (node.kind === 'list') u8[least + node.repetition + 1] = node.element;
    return true;
  }

  #nextPage(states: SharedStates): 'input' | 'memory' | 'end' | 'go' {
    const spec = this.#spec;
    if (this.#entriesDone === spec.numValues) {
      if (this.#window === undefined) return 'end';
      this.#finishing = true;
      return 'go';
    }
    const page = this.#pages.next(states.block, states, () => 0);
    if (page === 'input' || page === 'memory') return page;
    const left = spec.numValues - this.#entriesDone;
    if (page.numValues > left) {
      page.close(false);
      throw new DecodeError('PAGE_HEADER', `page of ${page.numValues} values`, {
        expected: `at most ${left}, what is left of the chunk's ${spec.numValues}`,
      });
    }
    if (this.#pages.dictionary !== undefined && this.#hybrid === 0) {
      this.#hybrid = this.#environment.pool.allocate(HYBRID.size);
      if (this.#hybrid === 0) {
        this.#pages.putBack(page);
        return 'memory';
      }
    }
    this.#open = { page, values: undefined, entriesLeft: page.numValues };
    return 'go';
  }

  #stepPage(open: OpenPage): 'input' | 'memory' | 'go' {
    open.page.advance();
    open.values ??= this.#startPage(open);
    if (open.values === undefined) return 'input';
    const isSpent = open.entriesLeft === 0 && this.#overhang === undefined;
    if (this.#window === undefined && !isSpent && !this.#openWindow()) return 'memory';
    const result = this.#window === undefined ? 'spent' : this.#fillWindow(open, open.values, this.#window);
    if (result !== 'spent') return result;
    // bytes after the last value may be bad too: what a page comes to must not depend on how it arrives
    if (!open.page.isComplete) return 'input';
    open.values.end?.();
    open.values.leaveWindow?.();
    this.#closePage(open, true);
    return 'go';
  }

  /** Moves the page's values and levels to the window; 'spent' when it has no more. */
  #fillWindow(open: OpenPage, values: PageValues, window: NestedWindow): 'input' | 'memory' | 'go' | 'spent' {
    if (!window.closed && window.decoded > window.accepted) this.#acceptRows(window, window.accepted);
    if (window.target.dense < window.valid) {
      const result = this.#decodeValues(values, window);
      if (result !== 'go' || window.target.dense < window.valid) return result;
    }
    if (window.closed) {
      this.#finishing = true;
      return 'go';
    }
    return open.entriesLeft > 0 ? this.#decodeLevels(open, window) : 'spent';
  }

  #startPage(open: OpenPage): PageValues | undefined {
    const { pool, kernels } = this.#environment;
    const layout = open.page.layout();
    if (layout === undefined) return undefined;
    this.#repetition?.begin(layout.repetition);
    this.#definition?.begin(layout.definition);
    const { boolRuns, bytes, delta } = this.#sharedStates!;
    const context: PageContext = {
      pool,
      kernels,
      states: { boolRuns, bytes, delta, hybrid: this.#hybrid },
      section: open.page.values,
      start: layout.values,
      width: this.#width,
    };
    const dictionary = this.#pages.dictionary;
    const values = openPageValues(context, open.page.encoding, this.#spec.physical, dictionary);
    return values.layout === 'indices' ? new GatheredBytes(context, values, dictionary!.bytes!) : values;
  }

  #decodeValues(values: PageValues, window: NestedWindow): 'input' | 'memory' | 'go' {
    const code = values.decode(window.target, window.valid - window.target.dense);
    if (code === NEED) return 'input';
    if (code === NO_MEMORY) return 'memory';
    if (code !== FULL) return 'go';
    const bytes = values.needBytes?.() ?? 0;
    values.leaveWindow?.();
    return window.growData(bytes) ? 'go' : 'memory';
  }

  #decodeLevels(open: OpenPage, window: NestedWindow): 'input' | 'memory' | 'go' {
    if (window.room === 0) {
      open.values?.leaveWindow?.();
      if (!window.grow()) return 'memory';
    }
    const take = Math.min(open.entriesLeft, LEVEL_CHUNK_ENTRIES, window.room);
    const { page } = open;
    const at = window.decoded;
    if (this.#repetition !== undefined && this.#repetitionAhead < take) {
      const target = window.repetition + at + this.#repetitionAhead;
      const mark = page.repetitionMark;
      this.#repetitionAhead += this.#repetition.decode(target, take - this.#repetitionAhead, mark);
      if (this.#repetitionAhead < take) return 'input';
    }
    if (this.#definition === undefined) {
      const { u8 } = this.#environment.pool;
      u8.fill(0, window.definition + at, window.definition + at + take);
    } else if (this.#definitionAhead < take) {
      const target = window.definition + at + this.#definitionAhead;
      this.#definitionAhead += this.#definition.decode(target, take - this.#definitionAhead, page.levelMark);
      if (this.#definitionAhead < take) return 'input';
    }
    this.#repetitionAhead = 0;
    this.#definitionAhead = 0;
    if (window.repetition !== 0) this.#checkNesting(window, at, take);
    window.decoded += take;
    open.entriesLeft -= take;
    this.#entriesDone += take;
    this.#acceptRows(window, at);
    return 'go';
  }

  /** Throws LEVELS when one of `count` entries from `at` on goes on with a list that it, or the one before, is not in. */
  #checkNesting(window: NestedWindow, at: number, count: number): void {
    const { kernels, pool } = this.#environment;
    const { repetition, definition } = window;
    const before = at === 0 ? 255 : pool.u8[definition + at - 1]!;
    const least = this.#levelStates + STATES.least;
    const bad = kernels.checkNesting(repetition + at, definition + at, count, least, before);
    if (bad === count) return;
    const [r, d] = [pool.u8[repetition + at + bad]!, pool.u8[definition + at + bad]!];
    throw new DecodeError('LEVELS', `an entry of levels ${r} and ${d} goes on with a list that is not there`);
  }

  /** Accepts the decoded entries from `from` on, up to where the window's last row ends. */
  #acceptRows(window: NestedWindow, from: number): void {
    const { kernels, pool } = this.#environment;
    const { rowsMax, entriesMax, maxDefinitionLevel } = window.shape;
    const count = window.decoded - from;
    const repetition = window.repetition === 0 ? 0 : window.repetition + from;
    if (from === 0 && repetition !== 0 && pool.u8[repetition] !== 0) {
      throw new DecodeError('LEVELS', 'a row begins in the middle of a list', { expected: 'repetition level 0' });
    }
    const rows = kernels.countRows(repetition, count);
    let accepted = window.decoded;
    if (window.rows + rows > rowsMax) {
      accepted = from + kernels.findRow(repetition, count, rowsMax - window.rows);
      window.rows = rowsMax;
      window.closed = true;
    } else if (window.decoded >= entriesMax && rows > 0 && window.rows + rows > 1) {
      accepted = from + kernels.findRow(repetition, count, rows - 1);
      window.rows += rows - 1;
      window.closed = true;
    } else {
      window.rows += rows;
      window.closed = repetition === 0 && window.rows === rowsMax;
    }
    const taken = accepted - window.accepted;
    if (maxDefinitionLevel === 0) window.valid += taken;
    else {
      const definition = window.definition + window.accepted;
      window.valid += kernels.countSlots(0, definition, taken, 255, maxDefinitionLevel);
    }
    window.accepted = accepted;
  }

  #openWindow(): boolean {
    const spec = this.#spec;
    const left = spec.numValues - this.#entriesDone + (this.#overhang?.definition.length ?? 0);
    const perRow = Math.max(1, spec.numValues / Math.max(1, this.#nested.rowsHint));
    const overhang = this.#overhang?.definition.length ?? 0;
    const guess = Math.min(Math.ceil(spec.windowRows * perRow * 1.1) + 64, left, NESTED_ENTRIES_MAX);
    const average = spec.uncompressedBytes / Math.max(1, spec.numValues);
    const dataBytes = this.#layout === 'bytes' ? Math.min(guess * average, NESTED_DATA_BYTES_MAX) : 0;
    this.#window = NestedWindow.open(this.#environment, {
      nested: this.#nested,
      layout: this.#layout,
      width: this.#layout === 'fixed' ? this.#width : this.#layout === 'bits' ? 1 : 4,
      maxDefinitionLevel: spec.maxDefinitionLevel,
      rowsMax: spec.windowRows,
      entriesMax: Math.max(guess, overhang),
      dataBytes: this.#layout === 'bytes' ? Math.max(64, Math.ceil(dataBytes)) : 0,
    });
    if (this.#window === undefined) return false;
    if (this.#overhang !== undefined) this.#window.accept(this.#overhang);
    this.#overhang = undefined;
    return true;
  }

  #finishWindow(): Segment | undefined {
    const window = this.#window!;
    const { kernels } = this.#environment;
    this.#open?.values?.leaveWindow?.();
    if (this.#spec.utf8 && this.#layout === 'bytes') {
      const { offsets, count, data, dataEnd } = window.text;
      checkUtf8(kernels, offsets, count, data, dataEnd, this.#sharedStates!.utf8);
    }
    const overhang = window.overhang();
    // before the segment is made: an error must not leave it to nobody
    if (overhang === undefined) this.#closeFinishedPage();
    const segment = window.finish();
    if (segment === undefined) return undefined;
    this.#overhang = overhang;
    this.#window = undefined;
    this.#finishing = false;
    return segment;
  }

  /** A page that has nothing more to give is checked and closed before its last segment goes out. */
  #closeFinishedPage(): void {
    const open = this.#open;
    if (open === undefined || open.entriesLeft > 0 || !open.page.isComplete) return;
    open.values?.end?.();
    this.#closePage(open, true);
  }

  #closePage(open: OpenPage, isDecoded: boolean): void {
    open.values?.close();
    open.page.close(isDecoded);
    this.#open = undefined;
  }

  close(): void {
    const { pool } = this.#environment;
    if (this.#open !== undefined) this.#closePage(this.#open, false);
    this.#window?.discard();
    this.#window = undefined;
    if (this.#levelStates !== 0) pool.free(this.#levelStates, STATES.size);
    if (this.#hybrid !== 0) pool.free(this.#hybrid, HYBRID.size);
    this.#levelStates = 0;
    this.#hybrid = 0;
  }
}

/** Bytes: room for byte arrays that a window begins with at most; it grows when they need more. */
const NESTED_DATA_BYTES_MAX = 16 << 20;
