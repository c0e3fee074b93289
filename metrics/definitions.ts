/**
 * Every metric, once: its name, unit, labels, help and stability. Whoever measures names a metric by its definition
 * here, never by a text of its own; METRICS.md is made from this. Names begin with the stage that they are about.
 */
import { forSides } from './definition-makers.ts';
import { DOOR_METRICS } from './door-definitions.ts';
import { CODECS, DECODER, ENCODINGS, MOUNT_ERRORS, MOUNT_REQUESTS, SERVED, STATUSES } from './label-values.ts';
import type { MetricDefinition } from './metric.ts';
import { RDMA_METRICS } from './rdma-definitions.ts';
import { RESILIENCE_METRICS } from './resilience-definitions.ts';

const server = forSides('server');
const client = forSides('client');
const both = forSides('server', 'client');

export const METRICS = {
  // serve: the storage server
  serveQueuePairs: server.gauge('qanat_serve_queue_pairs', 'count', 'Connections by the state of their queue pair.', {
    labels: { state: ['handshake', 'serving', 'closing', 'ended'] },
  }),
  serveConnections: server.counter('qanat_serve_connections_total', 'count', 'Connections accepted.'),
  serveRejected: server.counter(
    'qanat_serve_rejected_connections_total',
    'count',
    'Connections ended by the server: refused in the handshake, speaking something else (garbage), not taking their bytes (stalled).',
    { labels: { reason: ['refused', 'garbage', 'stalled'] } },
  ),
  serveCompletions: server.counter('qanat_serve_completions_total', 'count', 'READs completed, by status.', {
    labels: { status: STATUSES },
  }),
  serveReadSeconds: server.histogram(
    'qanat_serve_read_seconds',
    'seconds',
    'Time from the arrival of a READ that succeeded until its last bytes were handed to the socket.',
  ),
  serveReadBytes: server.histogram('qanat_serve_read_bytes', 'bytes', 'Sizes of READs that succeeded.'),
  servePayload: server.counter('qanat_serve_payload_bytes_total', 'bytes', 'Bytes of the region handed to sockets.'),
  serveSent: server.counter(
    'qanat_serve_sent_bytes_total',
    'bytes',
    'Bytes handed to sockets in answers to READs, frame headers included.',
  ),
  serveReadsQueued: server.gauge('qanat_serve_reads_queued', 'count', 'READs accepted and not planned into a burst.'),
  serveQueuePairsWaiting: server.gauge(
    'qanat_serve_queue_pairs_waiting',
    'count',
    'Queue pairs that wait for their turn to read from storage.',
  ),
  serveBursts: server.gauge('qanat_serve_bursts', 'count', 'Bursts that are read from storage or sent.', {
    labels: { stage: ['reading', 'sending'] },
  }),
  serveSlabs: server.gauge('qanat_serve_slabs', 'count', 'Send buffers in use: large ones are shared and limited.', {
    labels: { size: ['small', 'large'] },
  }),
  serveSlabsLimit: server.gauge('qanat_serve_slabs_limit', 'count', 'Large send buffers there may be.'),
  serveOpenFiles: server.gauge('qanat_serve_open_files', 'count', 'Served files that are open.'),
  serveFiles: server.gauge('qanat_serve_region_files', 'count', 'Files in the region.'),
  serveFileBytes: server.gauge('qanat_serve_region_file_bytes', 'bytes', 'Bytes of the files in the region.'),
  serveRegionBytes: server.gauge('qanat_serve_region_bytes', 'bytes', 'Bytes of the region, directory included.'),

  servePinnedBytes: server.gauge(
    'qanat_serve_pinned_bytes',
    'bytes',
    'Bytes of files that are held in memory (--pin).',
  ),
  serveGeneration: server.gauge(
    'qanat_serve_generation',
    'count',
    'Number of the generation that is served: 1 is the first one since the start.',
  ),
  serveGenerationAge: server.gauge(
    'qanat_serve_generation_age_seconds',
    'seconds',
    'Time since the generation that is served was published.',
  ),
  servePublishFailures: server.counter(
    'qanat_serve_publish_failures_total',
    'count',
    'Looks at the served files that failed and left the generation as it was.',
  ),
  serveStaleRefusals: server.counter(
    'qanat_serve_stale_refusals_total',
    'count',
    'READs refused because they named a generation that has been replaced.',
  ),
  ...DOOR_METRICS,
  ...RDMA_METRICS,

  // fetch: requests of clients
  fetchQueuePairs: client.gauge('qanat_fetch_queue_pairs', 'count', 'Queue pairs to servers, by state.', {
    labels: { state: ['RESET', 'INIT', 'RTR', 'RTS', 'ERR'] },
  }),
  fetchCompletions: client.counter('qanat_fetch_completions_total', 'count', 'READs completed, by status.', {
    labels: { status: STATUSES },
  }),
  fetchRequests: client.counter(
    'qanat_fetch_requests_total',
    'count',
    'Requests sent: READs to a server, reads of local files; a large one of those below is several of them.',
  ),
  fetchSeconds: client.histogram(
    'qanat_fetch_request_seconds',
    'seconds',
    'Time of a planned request for column chunks from asking to its last byte, retries included.',
  ),
  fetchBytes: client.histogram('qanat_fetch_request_bytes', 'bytes', 'Sizes of planned requests for column chunks.'),
  fetchReads: client.gauge('qanat_fetch_reads', 'count', 'Reads of sources: waiting for their turn, or under way.', {
    labels: { state: ['waiting', 'active'] },
  }),
  fetchWireBytes: client.counter(
    'qanat_fetch_wire_bytes_total',
    'bytes',
    'Payload bytes that came from sources: with those of the disk cache, used + wasted + undecided.',
  ),
  fetchUsedBytes: client.counter(
    'qanat_fetch_used_bytes_total',
    'bytes',
    'Bytes that came and were used: column chunks that were decoded, or what a mount had read of a file (chunk); footers and directories (metadata).',
    { labels: { use: ['chunk', 'metadata'] } },
  ),
  fetchWastedBytes: client.counter(
    'qanat_fetch_wasted_bytes_total',
    'bytes',
    'Bytes that came for nothing: gaps that requests read over, row groups ahead that nobody asked for in the end ' +
      '(speculation) or that had to make room (evicted), reads given up (cancelled), and what the transport threw away (discarded).',
    { labels: { reason: ['gap', 'speculation', 'cancelled', 'evicted', 'discarded'] } },
  ),
  fetchUndecidedBytes: client.gauge(
    'qanat_fetch_undecided_bytes',
    'bytes',
    'Bytes that came and are not entered as used or wasted yet: their request is still in memory.',
  ),
  fetchRetries: client.counter('qanat_fetch_retries_total', 'count', 'Reads and listings tried again.'),
  fetchReconnects: client.counter('qanat_fetch_reconnects_total', 'count', 'Connections made again after a loss.'),
  fetchSources: client.gauge('qanat_fetch_sources', 'count', 'Sources that are open.'),
  ...RESILIENCE_METRICS,

  // cache: what is kept on disk
  cacheReads: client.counter(
    'qanat_cache_reads_total',
    'count',
    'Reads of sources with a disk cache, by how much of them it had: all (hit), some (partial), nothing (miss).',
    { labels: { outcome: ['hit', 'partial', 'miss'] } },
  ),
  cacheReadBytes: client.counter(
    'qanat_cache_read_bytes_total',
    'bytes',
    'Bytes of reads that came from the disk cache and not over the wire.',
  ),
  cacheWrites: client.counter('qanat_cache_writes_total', 'count', 'Blocks written to the disk cache.'),
  cacheWrittenBytes: client.counter('qanat_cache_written_bytes_total', 'bytes', 'Bytes of those blocks.'),
  cacheEvictions: client.counter(
    'qanat_cache_evictions_total',
    'count',
    'Blocks deleted from the disk cache to make room.',
  ),
  cacheDamaged: client.counter(
    'qanat_cache_damaged_total',
    'count',
    'Blocks that were not what they should be: deleted, and fetched from the source.',
  ),
  cacheDropped: client.counter(
    'qanat_cache_dropped_total',
    'count',
    'Blocks that were not written: the disk was too slow, full, or not to be written to.',
  ),
  cacheBytes: client.gauge('qanat_cache_bytes', 'bytes', 'Bytes of the disk cache, as this process knows it.'),
  cacheLimit: client.gauge('qanat_cache_limit_bytes', 'bytes', 'Bytes that it may have (--cache-size).'),
  cacheBlocks: client.gauge('qanat_cache_blocks', 'count', 'Blocks of the disk cache, as this process knows it.'),
  cacheQueuedBytes: client.gauge(
    'qanat_cache_queued_bytes',
    'bytes',
    'Bytes in memory, beside the budget, that wait to be written to the disk cache.',
  ),

  // prefetch: row groups ahead
  prefetchDepth: client.gauge(
    'qanat_prefetch_depth',
    'count',
    'Row groups that open scans keep in flight at most, the one being read included; the largest of the scans, or that of a mount.',
  ),
  prefetchInFlight: client.gauge('qanat_prefetch_row_groups_in_flight', 'count', 'Row groups in flight.'),
  prefetchRowGroups: client.counter(
    'qanat_prefetch_row_groups_total',
    'count',
    'Row groups by what the prefetch had brought when their turn came: what it had asked for (hit), that was still on its way (late), it had asked for nothing (miss, as for the first of a scan).',
    { labels: { outcome: ['hit', 'late', 'miss'] } },
  ),
  prefetchEvictions: client.counter(
    'qanat_prefetch_evictions_total',
    'count',
    'Row groups given up for want of memory and fetched again.',
  ),

  // pool: the memory budget
  poolCapacity: client.gauge('qanat_pool_capacity_bytes', 'bytes', 'The memory budget (--memory).'),
  poolUsed: client.gauge(
    'qanat_pool_used_bytes',
    'bytes',
    'Memory in use: in flight, buffered, decoded, not released.',
  ),
  poolPeak: client.gauge('qanat_pool_peak_bytes', 'bytes', 'Most memory that was in use at a time.'),

  // scan: what consumers get
  scanOpen: client.gauge('qanat_scan_open', 'count', 'Scans that are open.'),
  scans: client.counter('qanat_scan_ended_total', 'count', 'Scans that have ended, by how.', {
    labels: { outcome: ['complete', 'closed', 'failed'] },
  }),
  scanRows: client.counter('qanat_scan_rows_total', 'count', 'Rows handed to consumers.'),
  scanBatches: client.counter('qanat_scan_batches_total', 'count', 'Batches handed to consumers.'),
  scanRowGroups: client.counter('qanat_scan_row_groups_total', 'count', 'Row groups read to their end.'),
  scanWaited: client.counter('qanat_scan_waited_seconds_total', 'seconds', 'Time that consumers waited for a batch.'),

  // decode: decoder threads
  decodeDecoders: client.gauge('qanat_decode_decoders', 'count', 'Decoder threads.'),
  decodeSeconds: client.counter(
    'qanat_decode_seconds_total',
    'seconds',
    'Time of a decoder on its input and on its output side: busy, starved (waits for bytes), stalled (its values are not ' +
      'taken, or memory is short), idle (no column chunk is asked for). The four states add up to the time that has passed.',
    { labels: { decoder: DECODER, side: ['input', 'output'], state: ['busy', 'starved', 'stalled', 'idle'] } },
  ),
  decodeUtilization: client.gauge(
    'qanat_decode_utilization_ratio',
    'ratio',
    'Busy share of the time since the decoder was started; for that of the last minutes take the rates of qanat_decode_seconds_total.',
    { labels: { decoder: DECODER } },
  ),
  decodeBeats: client.counter(
    'qanat_decode_beats_total',
    'count',
    'Beats of 64 bytes: of column chunks on the input side, of decoded values on the output side.',
    { labels: { decoder: DECODER, side: ['input', 'output'] } },
  ),
  decodeWaits: client.counter(
    'qanat_decode_waits_total',
    'count',
    'Beats that the decoder had been starved, stalled or idle before.',
    {
      labels: { decoder: DECODER, side: ['input', 'output'], state: ['starved', 'stalled', 'idle'] },
      stability: 'experimental',
    },
  ),
  decodeFlows: client.gauge('qanat_decode_flows', 'count', 'Column chunks that are open on a decoder.', {
    labels: { decoder: DECODER },
  }),
  decodeOccupancy: client.gauge(
    'qanat_decode_occupancy',
    'count',
    "Slots of a decoder's queue that are taken: column chunks asked for their next values; there are 64.",
    { labels: { decoder: DECODER } },
  ),
  decodeQueueLength: client.gauge(
    'qanat_decode_queue_length',
    'count',
    'Column chunks that wait for a slot of their decoder.',
    { labels: { decoder: DECODER } },
  ),
  decodeEncodingPages: client.counter('qanat_decode_pages_total', 'count', 'Data pages decoded, by encoding.', {
    labels: { encoding: ENCODINGS },
  }),
  decodeEncodingValues: client.counter(
    'qanat_decode_values_total',
    'count',
    'Values decoded, nulls included, by the encoding of their page.',
    { labels: { encoding: ENCODINGS } },
  ),
  decodeEncodingBytes: client.counter(
    'qanat_decode_encoded_bytes_total',
    'bytes',
    'Bytes of data pages decoded, decompressed, levels included, by encoding.',
    { labels: { encoding: ENCODINGS } },
  ),
  decodeCodecValues: client.counter(
    'qanat_decode_codec_values_total',
    'count',
    'Values decoded, nulls included, by the codec of their page.',
    { labels: { codec: CODECS } },
  ),
  decodeCompressedBytes: client.counter(
    'qanat_decode_compressed_bytes_total',
    'bytes',
    'Bytes of pages, dictionary pages too, before decompression, by codec.',
    { labels: { codec: CODECS } },
  ),
  decodeDecompressedBytes: client.counter(
    'qanat_decode_decompressed_bytes_total',
    'bytes',
    'The same bytes after decompression.',
    { labels: { codec: CODECS } },
  ),

  // mount: the file system
  mountRequests: client.counter('qanat_mount_requests_total', 'count', 'Requests of the kernel, by operation.', {
    labels: { operation: MOUNT_REQUESTS },
  }),
  mountErrors: client.counter(
    'qanat_mount_errors_total',
    'count',
    'Requests answered with an error, by its name. ENOSYS and ENODATA are no failures: the kernel asks what there may be.',
    { labels: { errno: MOUNT_ERRORS } },
  ),
  mountOpens: client.counter('qanat_mount_opens_total', 'count', 'Files opened, by how the kernel serves the handle.', {
    labels: { serving: SERVED },
  }),
  mountReads: client.counter(
    'qanat_mount_reads_total',
    'count',
    "Reads answered with bytes, by how their handle is served; what the kernel's page cache answers is not among them.",
    { labels: { serving: SERVED } },
  ),
  mountReadBytes: client.counter('qanat_mount_read_bytes_total', 'bytes', 'Bytes that reads were answered with.'),
  mountTimeouts: client.counter(
    'qanat_mount_timeouts_total',
    'count',
    'Requests that were not answered in time and got ETIMEDOUT.',
  ),
  mountInterrupts: client.counter('qanat_mount_interrupts_total', 'count', 'Requests given up by a signal.'),
  mountPending: client.gauge('qanat_mount_pending', 'count', 'Requests of the kernel that wait for their answer.'),
  mountHandles: client.gauge('qanat_mount_handles', 'count', 'Open files and folders.'),
  mountNodes: client.gauge('qanat_mount_nodes', 'count', 'Files and folders that are mounted or still in use.'),
  mountGenerations: client.counter(
    'qanat_mount_generations_total',
    'count',
    'Times that what is mounted was replaced because the source has changed.',
  ),
  mountFiles: client.gauge('qanat_mount_files', 'count', 'Files that are mounted.'),
  mountStoreReads: client.counter(
    'qanat_mount_store_reads_total',
    'count',
    "Reads of the source's bytes (raw) and of decoded chunks (decoded) by what was in memory: all of it (there), on its way (late), nothing asked for yet (absent).",
    { labels: { store: ['raw', 'decoded'], outcome: ['there', 'late', 'absent'] } },
  ),
  mountHeldBytes: client.gauge('qanat_mount_held_bytes', 'bytes', 'Bytes kept in memory, by what they are.', {
    labels: { store: ['raw', 'decoded'] },
  }),
  mountEvictions: client.counter(
    'qanat_mount_evictions_total',
    'count',
    'Pieces of files (raw) and decoded chunks (decoded) that left memory for others.',
    { labels: { store: ['raw', 'decoded'] } },
  ),
  mountChunks: client.counter(
    'qanat_mount_chunks_total',
    'count',
    'Column chunks decoded for the decoded view, by how that went.',
    {
      labels: { outcome: ['decoded', 'failed'] },
    },
  ),
  mountPushedBytes: client.counter(
    'qanat_mount_pushed_bytes_total',
    'bytes',
    "Decoded bytes put into the kernel's page cache while nobody read.",
    { stability: 'experimental' },
  ),

  // the endpoint and the process
  httpRequests: both.counter('qanat_http_requests_total', 'count', 'Requests to this endpoint, by status.', {
    labels: { code: ['200', '404', '405', '503', 'other'] },
  }),
  collectSeconds: both.gauge(
    'qanat_metrics_collect_seconds',
    'seconds',
    'Time that the scrape before this one took to gather its figures.',
  ),
  buildInfo: both.gauge('qanat_build_info', 'info', 'Always 1; the version of Qanat and of Node.js as labels.', {
    labels: { version: 'text', node: 'text' },
  }),
  processCpu: both.counter('process_cpu_seconds_total', 'seconds', 'Processor time, user and system, all threads.'),
  processStart: both.gauge('process_start_time_seconds', 'seconds', 'When the process started, seconds since 1970.'),
  processResident: both.gauge('process_resident_memory_bytes', 'bytes', 'Resident memory.'),
  processOpenFds: both.gauge('process_open_fds', 'count', 'Open file descriptors.'),
  processMaxFds: both.gauge('process_max_fds', 'count', 'File descriptors there may be.'),
  heapUsed: both.gauge('nodejs_heap_size_used_bytes', 'bytes', "JavaScript heap in use, the main thread's."),
  external: both.gauge('nodejs_external_memory_bytes', 'bytes', 'Memory of buffers outside the JavaScript heap.'),
  loopSeconds: both.counter('nodejs_eventloop_seconds_total', 'seconds', 'Time of the main thread.', {
    labels: { state: ['active', 'idle'] },
  }),
};

/** Every definition, in the order of METRICS.md. */
export const DEFINITIONS: readonly MetricDefinition[] = Object.values(METRICS);
