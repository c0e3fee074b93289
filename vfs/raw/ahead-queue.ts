/**
 * Units that are to be fetched before anybody waits for them, in order, and how much of such is on its way: a reader's
 * own request must not queue behind too much of it.
 */
import { AHEAD_WISHES_MAX, SPECULATIVE_BYTES_MAX, SPECULATIVE_REQUESTS_MAX } from '../limits.ts';
import type { StoredFile, Unit } from './stored-file.ts';

export class AheadQueue {
  readonly #units = new Set<Unit>();
  #requests = 0;
  #bytes = 0;

  /** Another request may begin, and there is something to ask for. */
  get mayBegin(): boolean {
    return this.#units.size > 0 && this.#requests < SPECULATIVE_REQUESTS_MAX && this.#bytes < SPECULATIVE_BYTES_MAX;
  }

  /** What is in memory, on its way or queued already is passed over. Beyond the bound the oldest wishes are dropped. */
  add(units: readonly Unit[]): void {
    for (const unit of units) {
      if (unit.fetch !== undefined) continue;
      this.#units.add(unit);
      if (this.#units.size > AHEAD_WISHES_MAX) this.#units.delete(this.#units.values().next().value!);
    }
  }

  /** The next units, all of one file and of at most so many bytes; they stay queued until they are on their way. */
  batch(bytesMax: number): { readonly units: readonly Unit[]; readonly bytes: number } {
    const units: Unit[] = [];
    let bytes = 0;
    for (const unit of this.#units) {
      if (unit.fetch !== undefined || unit.file.isClosed) {
        this.#units.delete(unit);
        continue;
      }
      const more = bytes + unit.end - unit.start;
      if (units.length > 0 && (unit.file !== units[0]!.file || more > bytesMax)) break;
      units.push(unit);
      bytes = more;
    }
    return { units, bytes };
  }

  remove(units: readonly Unit[]): void {
    for (const unit of units) this.#units.delete(unit);
  }

  forget(file: StoredFile): void {
    for (const unit of this.#units) if (unit.file === file) this.#units.delete(unit);
  }

  clear(): void {
    this.#units.clear();
  }

  /** A request of so many bytes is on its way; what is returned is called when it has ended. */
  began(bytes: number): () => void {
    this.#requests++;
    this.#bytes += bytes;
    return () => {
      this.#requests--;
      this.#bytes -= bytes;
    };
  }
}
