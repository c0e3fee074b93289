/**
 * A histogram's counts while it is being filled: a plain array, so that what is measured pays nanoseconds. The registry
 * reads it at a scrape. Bounds are inclusive, as Prometheus means them; the last count is of all that is larger.
 */
export class BucketCounts {
  readonly bounds: readonly number[];
  /** One more than there are bounds; not cumulative. */
  readonly counts: Float64Array;
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const { bounds } = this;
    let k = 0;
    while (k < bounds.length && value > bounds[k]!) k++;
    this.counts[k]!++;
    this.sum += value;
  }

  /** Enters everything that `other` has, which has the same bounds. */
  merge(other: BucketCounts): void {
    if (other.bounds.length !== this.bounds.length) throw new RangeError('histograms of other bounds');
    for (const [k, count] of other.counts.entries()) this.counts[k]! += count;
    this.sum += other.sum;
  }
}
