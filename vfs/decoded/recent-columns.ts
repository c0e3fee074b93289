/**
 * Which columns were read of the row groups that were read last: whoever begins a row group will want those that were
 * wanted of the one before. Several readers may be at several row groups, so that a few are remembered.
 */

/** Row groups that are remembered: as many as threads of an engine read at once, and what each has just left. */
const GROUPS_MAX = 8;

export class RecentColumns {
  /** The one that was begun first comes first. */
  readonly #groups = new Map<number, Set<number>>();

  /**
   * A column of a row group is read. Returns the columns to be expected of the next row groups: this one and, when it is
   * the first of its row group, those that were read of the nearest row group before.
   */
  note(group: number, column: number): readonly number[] {
    const known = this.#groups.get(group);
    if (known !== undefined) {
      known.add(column);
      return [column];
    }
    const before = this.#before(group);
    this.#groups.set(group, new Set([column]));
    if (this.#groups.size > GROUPS_MAX) this.#groups.delete(this.#groups.keys().next().value!);
    return [...new Set([column, ...before])];
  }

  #before(group: number): Iterable<number> {
    let nearest = -1;
    for (const other of this.#groups.keys()) if (other < group && other > nearest) nearest = other;
    return this.#groups.get(nearest) ?? [];
  }
}
