/** The file that mounts read before they are ready (warm-up.ts), beside this one. bench/make-warm-up.ts makes it. */
export const WARM_UP_FILE = `${import.meta.dirname}/warm-up.parquet`;
