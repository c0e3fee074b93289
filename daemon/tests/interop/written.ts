/** What the writers of this folder make: files on disk, how they were asked for, and what is in them. */

/** What a writer was given, for the column that it wrote. */
export interface ExpectedColumn {
  readonly name: string;
  readonly nulls: number;
  readonly sha256: string;
}

export interface WrittenFile {
  readonly file: string;
  readonly options: Readonly<Record<string, unknown>>;
  readonly rows: number;
  readonly columns: readonly ExpectedColumn[];
}

/** How values are drawn: percent of nulls at every level, and how many different values a leaf has. */
export interface Drawing {
  readonly nulls: number;
  readonly distinct: number;
}

/** `required`: no nulls, and fields that may hold none where the writer has such. */
export type Nulls = 'required' | 'none' | 'few' | 'half' | 'most' | 'all';
export const NULLS: readonly Nulls[] = ['required', 'none', 'few', 'half', 'most', 'all'];
const PERCENT: Readonly<Record<Nulls, number>> = { required: 0, none: 0, few: 1, half: 50, most: 99, all: 100 };

export const drawingOf = (nulls: Nulls, distinct: number): Drawing => ({ nulls: PERCENT[nulls], distinct });
