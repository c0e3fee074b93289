/** Storage server: files behind a directory as one byte region, served over queue pairs. */
export { Certificates } from './access/certificates.ts';
export { CERTIFICATES_LOOK_MS } from './access/limits.ts';
export type { ServerCounters } from './counters.ts';
export { ServeError, type ServeErrorCode } from './errors.ts';
export { FILES_LIMITS } from './http/limits.ts';
export { DEFAULT_LIMITS, type ServerLimits } from './limits.ts';
export { type PackedRegion, type PackOptions, packRegion } from './pack-region.ts';
export type { PublishOutcome } from './publisher.ts';
export type { Skipped } from './scan-roots.ts';
export { type RunningServer, type ServedRegion, type ServeOptions, serveRegion } from './serve-region.ts';
