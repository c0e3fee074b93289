/** What a reader has made of one file of the corpus: plain data, that a worker sends and the verdict is given on. */

export interface ColumnReading {
  /** Index of its first leaf, and among the top-level fields. */
  readonly leaf: number;
  readonly topLevel: number;
  readonly name: string;
  readonly rows: number;
  readonly nulls: number;
  readonly sha256: string;
  readonly error?: ReadingError;
}

export interface ReadingError {
  /** Absent when it is not an error of ours, which is a bug. */
  readonly code?: string;
  readonly message: string;
  readonly reason: string;
}

export interface FileReading {
  readonly columns: readonly ColumnReading[];
  /** The file could not be opened. */
  readonly error?: ReadingError;
  /** What differs when the columns are scanned together. */
  readonly together?: string;
  readonly view?: ViewReading;
  readonly peakRssBytes: number;
  /** Pool bytes that did not come back. */
  readonly leakedBytes: number;
}

/** What came of the decoded view. */
export interface ViewReading {
  /** What it says or holds otherwise than the file. */
  readonly difference?: string;
  /** Chunks that are decoded in it; 0 when the file passes through as it is. */
  readonly decoded: number;
  readonly errors: readonly ReadingError[];
}
