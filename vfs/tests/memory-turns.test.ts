/** Turns of memory, with needs and keepers that are numbers only. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Keeper, MemoryTurns, type Need } from '../raw/memory-turns.ts';
import { newRandom } from './seeded-random.ts';

/** So many units, some of which nobody uses. */
class Memory implements Keeper {
  readonly turns = new MemoryTurns();
  free: number;
  /** Kept, and used by nobody. */
  idle = 0;
  busy = false;

  constructor(units: number) {
    this.free = units;
    this.turns.add(this);
  }

  take(): boolean {
    while (this.free === 0) if (!this.turns.evict()) return false;
    this.free--;
    return true;
  }

  evict(readOnly: boolean): boolean {
    if (readOnly || this.idle === 0) return false;
    this.idle--;
    this.free++;
    return true;
  }

  isBusy(): boolean {
    return this.busy;
  }

  roomAgain(): void {}
}

/** Takes `wants` units one after the other and is answered when it has them all. */
class Reader implements Need {
  readonly turn: number;
  readonly isTrying = false;
  isGivingWay = false;
  held = 0;
  gaveWay = 0;
  outcome: 'answered' | 'failed' | undefined;
  readonly #memory: Memory;
  readonly #wants: number;
  /** Gives back what it holds only some turns of the event loop later. */
  readonly #isSlow: boolean;

  constructor(memory: Memory, wants: number, isSlow = false) {
    this.#memory = memory;
    this.#wants = wants;
    this.#isSlow = isSlow;
    this.turn = memory.turns.nextTurn();
  }

  start(): void {
    this.#memory.turns.begin(this);
    if (this.#memory.turns.isBehind(this)) this.#memory.turns.wait(this);
    else this.retry();
  }

  get holdsMemory(): boolean {
    return this.held > 0 && !this.isGivingWay && this.outcome === undefined;
  }

  retry(): void {
    if (this.isGivingWay) return;
    if (this.held < this.#wants && !this.#memory.take()) {
      this.#memory.turns.wait(this);
      return;
    }
    this.held++;
    if (this.held < this.#wants) setImmediate(() => this.#goOn());
    else this.#end('answered');
  }

  /** What it waits for comes in its own time. */
  #goOn(): void {
    if (this.outcome === undefined && this.held > 0) this.retry();
  }

  giveWay(): void {
    this.gaveWay++;
    this.isGivingWay = true;
    if (this.#isSlow) setImmediate(() => this.#giveBack());
    else this.#giveBack();
  }

  #giveBack(): void {
    this.isGivingWay = false;
    this.#memory.free += this.held;
    this.held = 0;
    this.#memory.turns.freed();
    this.#memory.turns.wait(this);
  }

  fail(): void {
    this.#end('failed');
  }

  #end(outcome: 'answered' | 'failed'): void {
    this.outcome = outcome;
    this.#memory.free += this.held;
    this.held = 0;
    this.#memory.turns.end(this);
  }
}

async function settled(readers: readonly Reader[]): Promise<void> {
  for (let k = 0; k < 20_000 && readers.some(({ outcome }) => outcome === undefined); k++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

// SEMANTICS 34
test('who came first goes on, whoever holds what', async () => {
  const random = newRandom('memory turns');
  for (let round = 0; round < 30; round++) {
    const memory = new Memory(10);
    const readers = Array.from({ length: 40 }, () => new Reader(memory, 1 + random.below(10), random.below(2) === 0));
    const order = [...readers].sort(() => random.below(3) - 1);
    for (const reader of order) {
      reader.start();
      if (random.below(3) === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await settled(readers);
    assert.deepEqual([...new Set(readers.map(({ outcome }) => outcome))], ['answered']);
    assert.equal(readers[0]!.gaveWay, 0, 'the first gives way to nobody');
    assert.equal(memory.free, 10);
  }
});

// SEMANTICS 34
test('a need that is short with all memory to itself fails, and no other', async () => {
  const memory = new Memory(10);
  const [first, large, last] = [new Reader(memory, 4), new Reader(memory, 11), new Reader(memory, 10)];
  for (const reader of [first, large, last]) reader.start();
  await settled([first, large, last]);
  assert.deepEqual(
    [first, large, last].map(({ outcome }) => outcome),
    ['answered', 'failed', 'answered'],
  );
  assert.equal(memory.free, 10);
});

test('what nobody uses leaves before anybody gives way', async () => {
  const memory = new Memory(10);
  memory.free = 2;
  memory.idle = 8;
  const readers = [new Reader(memory, 5), new Reader(memory, 5)];
  for (const reader of readers.toReversed()) reader.start();
  await settled(readers);
  assert.deepEqual(
    readers.map(({ outcome, gaveWay }) => [outcome, gaveWay]),
    [
      ['answered', 0],
      ['answered', 0],
    ],
  );
});

test('nobody fails while memory may come back by itself', async () => {
  const memory = new Memory(1);
  memory.free = 0;
  memory.busy = true;
  const reader = new Reader(memory, 1);
  reader.start();
  for (let k = 0; k < 50; k++) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(reader.outcome, undefined);
  memory.free = 1;
  memory.busy = false;
  memory.turns.freed();
  await settled([reader]);
  assert.equal(reader.outcome, 'answered');
});
