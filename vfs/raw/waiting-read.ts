/** A read that waits for units: they stay in memory for it, unless it has to give way to one that was asked before. */
import type { Range } from '../../decode/index.ts';
import type { Need } from './memory-turns.ts';
import type { BytesReady, Turn, Unit } from './stored-file.ts';

/** What a waiting read asks of the store. */
export interface ReadKeeper {
  /** Its units may leave. */
  park(read: WaitingRead): void;
  /** Its units are wanted (again). */
  resume(read: WaitingRead): void;
  failShort(read: WaitingRead): void;
}

export class WaitingRead implements Need {
  readonly units: readonly Unit[];
  readonly range: Range;
  readonly done: BytesReady;
  over = false;
  /** Holds none of its units. */
  isParked = true;
  /** It was short before: its units are asked for one by one. */
  wasShort = false;
  readonly isTrying = false;
  readonly #keeper: ReadKeeper;
  readonly #turn: Turn;

  constructor(keeper: ReadKeeper, units: readonly Unit[], range: Range, done: BytesReady, turn: Turn) {
    this.#keeper = keeper;
    this.units = units;
    this.range = range;
    this.done = done;
    this.#turn = turn;
  }

  get turn(): number {
    return this.#turn.turn;
  }

  get holdsMemory(): boolean {
    return !this.isParked && this.units.some(({ fetch }) => fetch !== undefined);
  }

  /** Units that it let go are still on their way: they can be evicted when they have come. */
  get isGivingWay(): boolean {
    return this.isParked && this.units.some((unit) => unit.pins === 0 && isOnItsWay(unit));
  }

  giveWay(): void {
    this.#keeper.park(this);
  }

  retry(): void {
    this.#keeper.resume(this);
  }

  fail(): void {
    this.#keeper.failShort(this);
  }
}

function isOnItsWay({ fetch, failure, landed, start, end }: Unit): boolean {
  return fetch !== undefined && failure === undefined && landed < end - start;
}
