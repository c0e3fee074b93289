/**
 * Who gets memory when it is not enough for all that are asked: those that asked first. What nobody uses leaves before
 * anybody has to wait. Then a need takes from those that came after it: they give back what they hold and begin again
 * when it is their turn. So the first one always goes on, then the next one is the first: whatever each of them holds,
 * nobody waits for ever, and only a need that has all of the memory to itself and is still short fails.
 */

import { SHORTAGE_LOOK_MS } from '../limits.ts';

/** Something that is asked for and takes memory until it is answered. */
export interface Need {
  /** The smaller, the earlier; may become smaller. What is done on behalf of another need has its turn. */
  readonly turn: number;
  /** Has memory that `giveWay` would bring back. */
  readonly holdsMemory: boolean;
  /** It gave way, and what it had is still to come back. */
  readonly isGivingWay: boolean;
  /** It tries again somewhere else, and will say `wait` or `satisfied`. */
  readonly isTrying: boolean;
  /** Gives back what it holds, at once or soon, and waits for `retry`. */
  giveWay(): void;
  /** Memory came back: tries again. */
  retry(): void;
  /** There will never be room. */
  fail(): void;
}

/** Who keeps memory that nobody may need. */
export interface Keeper {
  /** Frees something that nobody uses, only what has been read through when `readOnly`; false when there is nothing. */
  evict(readOnly: boolean): boolean;
  /** Something of it will end by itself, after which memory comes back or can be evicted. `than` is who asks. */
  isBusy(than: Need): boolean;
  /** Nobody is short: what was put off can go on. */
  roomAgain(): void;
}

/** Turns of what nobody waits for begin here: after those of all that somebody waits for. */
const AHEAD_TURN = 2 ** 50;

export class MemoryTurns {
  /** Needs that had to give way. */
  gaveWay = 0;
  readonly #keepers: Keeper[] = [];
  readonly #needs = new Set<Need>();
  /** Who waits, and since which return of memory. */
  readonly #short = new Map<Need, number>();
  /** Times that memory came back. */
  #returns = 0;
  #next = 1;
  #isWaking = false;
  #isTrying = false;
  #timer: NodeJS.Timeout | undefined;

  add(keeper: Keeper): void {
    this.#keepers.push(keeper);
  }

  /** A turn for what somebody waits for. */
  nextTurn(): number {
    return this.#next++;
  }

  /** A turn for what nobody waits for yet. */
  nextTurnAhead(): number {
    return AHEAD_TURN + this.#next++;
  }

  /** Somebody waits for memory. */
  get isShort(): boolean {
    return this.#short.size > 0;
  }

  /** Somebody who came before waits for memory: what is free is theirs. */
  isBehind(need: Need): boolean {
    for (const other of this.#short.keys()) if (other.turn < need.turn) return true;
    return false;
  }

  /** It is asked for. To be called before it takes memory. */
  begin(need: Need): void {
    this.#needs.add(need);
  }

  /** It was answered, and holds nothing. */
  end(need: Need): void {
    this.#short.delete(need);
    if (this.#needs.delete(need)) this.freed();
  }

  /** Frees something that nobody uses. */
  evict(): boolean {
    for (const readOnly of [true, false]) {
      for (const keeper of this.#keepers) if (keeper.evict(readOnly)) return true;
    }
    return false;
  }

  /** It found no room although nothing is left to evict: `retry` or `fail` follows, never within the call. */
  wait(need: Need): void {
    this.#short.set(need, this.#returns);
    if (!this.#isTrying) this.#wakeSoon();
  }

  /** A need that was trying has found room. */
  satisfied(need: Need): void {
    if (this.#short.delete(need)) this.freed();
  }

  /** Memory came back, or can be evicted now. */
  freed(): void {
    this.#returns++;
    this.#wakeSoon();
  }

  #wakeSoon(): void {
    if (this.#isWaking) return;
    this.#isWaking = true;
    queueMicrotask(() => {
      this.#isWaking = false;
      this.#wake();
    });
  }

  /** Lets those who wait try, in order; the first that is still short takes from those behind it. */
  #wake(): void {
    const waiting = [...this.#short.keys()].sort((a, b) => a.turn - b.turn);
    let trying = Number.POSITIVE_INFINITY;
    for (const need of waiting) {
      // what is free is for the one that is trying, and for what is done on its behalf
      if (need.turn > trying) break;
      const since = this.#short.get(need);
      if (since === undefined) continue;
      if (since < this.#returns && !need.isTrying) this.#try(need);
      if (!this.#short.has(need)) continue;
      if (need.isTrying) {
        trying = need.turn;
        continue;
      }
      this.#relieve(need);
      this.#lookAgain();
      return;
    }
    if (this.#short.size > 0) this.#lookAgain();
    else for (const keeper of this.#keepers) keeper.roomAgain();
  }

  #try(need: Need): void {
    this.#short.delete(need);
    this.#isTrying = true;
    try {
      need.retry();
    } finally {
      this.#isTrying = false;
    }
  }

  /** A decoder that waits for bytes can't be told from one at work but by the time that it takes. */
  #lookAgain(): void {
    if (this.#timer !== undefined || this.#short.size === 0) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.freed();
    }, SHORTAGE_LOOK_MS).unref();
  }

  #relieve(need: Need): void {
    if (this.evict()) {
      this.freed();
      return;
    }
    let last: Need | undefined;
    let others = false;
    for (const other of this.#needs) {
      if (other.isGivingWay) return; // its memory comes soon
      // what is done on behalf of another need has its turn, and what that holds does not end without it
      if (other.turn === need.turn || !other.holdsMemory) continue;
      others = true;
      if (other.turn > need.turn && (last === undefined || other.turn > last.turn)) last = other;
    }
    if (last !== undefined) {
      this.gaveWay++;
      last.giveWay();
      if (!last.isGivingWay) this.freed();
    } else if (!others && !this.#keepers.some((keeper) => keeper.isBusy(need))) {
      this.#short.delete(need);
      need.fail();
      this.freed();
    }
  }
}
