// The kernel module: everything that kernels.ts lists, plus the end of its tables for build.ts to check.
export * from "./snappy";
export * from "./lz4";
export * from "./hybrid";
export * from "./levels";
export * from "./bitmap";
export * from "./spread";
export * from "./gather";
export * from "./strings";
export * from "./utf8";
export * from "./delta";
export * from "./streams";
export * from "./nested";
export * from "./bit-packed";
export * from "./decimals";

/** First address after the module's own read-only tables. */
export function tablesEnd(): usize {
  return __heap_base;
}
