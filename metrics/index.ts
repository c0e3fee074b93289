/** What other folders may use of metrics/. */
export { BucketCounts } from './bucket-counts.ts';
export { METRICS } from './definitions.ts';
export { type EndpointOptions, type MetricsEndpoint, startMetricsEndpoint } from './endpoint.ts';
export { MetricsError } from './errors.ts';
export { isLoopback, isOwnName } from './host-name.ts';
export { openRegistry } from './open-registry.ts';
export { processCollector } from './process-metrics.ts';
export { addRecorded, type RecordedSample, SampleRecorder } from './recording.ts';
export type { Collector, CollectorHost, MetricsRegistry, Samples } from './registry.ts';
export {
  addStreamProfile,
  type Clock,
  newStreamProfile,
  PROFILER_BYTES,
  type StreamProfile,
  StreamProfiler,
  StreamState,
  streamProfileSince,
  takeStreamProfile,
  utilisation,
  wallNs,
} from './stream-profiler.ts';
