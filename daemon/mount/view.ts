/** How Parquet files look in a mount: as they are, or with columns of fixed width already decoded. */
export const VIEWS = ['raw', 'decoded'] as const;
export type View = (typeof VIEWS)[number];
