/**
 * Units that are to be fetched before anybody waits for them, in order, and how much of such is on its way: a reader's
 * own request must not queue behind too much of it.
 */
import { SPECULATIVE_BYTES_MAX, SPECULATIVE_REQUESTS_MAX } from '../limits.ts';
import type { StoredFile, Unit } from './stored-file.ts';

export class AheadQueue {
  #units: Unit[] = [];
  #requests = 0;
  #bytes = 0;

  /** Another request may begin, and there is something to ask for. */
  get mayBegin(): boolean {
    return this.#units.length > 0 && this.#requests < SPECULATIVE_REQUESTS_MAX && this.#bytes < SPECULATIVE_BYTES_MAX;
  }

  /** What is in memory, on its way or queued already is passed over. */
  add(units: readonly Unit[]): void {
    const queued = new Set(this.#units);
    for (const unit of units) if (unit.fetch === undefined) queued.add(unit);
    this.#units = [...queued];
  }

  /** The next units, all of one file and of at most so many bytes; they stay queued until they are on their way. */
  batch(bytesMax: number): { readonly units: readonly Unit[]; readonly bytes: number } {
    this.#units = this.#units.filter(({ fetch, file }) => fetch === undefined && !file.isClosed);
    const [first] = this.#units;
    const units: Unit[] = [];
    let bytes = 0;
    for (const unit of this.#units) {
      const more = bytes + unit.end - unit.start;
      if (units.length > 0 && (unit.file !== first!.file || more > bytesMax)) break;
      units.push(unit);
      bytes = more;
    }
    return { units, bytes };
  }

  remove(units: readonly Unit[]): void {
    const gone = new Set(units);
    this.#units = this.#units.filter((unit) => !gone.has(unit));
  }

  forget(file: StoredFile): void {
    this.#units = this.#units.filter((unit) => unit.file !== file);
  }

  clear(): void {
    this.#units = [];
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
