/** Sources whose files are bytes in memory: no disk, no server, and every read is on record. */
import { MemoryTransport } from '../../fetcher/tests/memory-transport.ts';
import { newTransportCounters } from '../../fetcher/transport/transport.ts';
import { openSource, type Source } from '../../vfs/index.ts';

/** A source of one file, `f.parquet`. */
export async function memorySource(bytes: Uint8Array): Promise<{ source: Source; transport: MemoryTransport }> {
  const transport = new MemoryTransport({ 'f.parquet': bytes });
  const opened = { transport, path: '', counters: newTransportCounters() };
  return { source: await openSource('rdma://memory/f.parquet', {}, async () => opened), transport };
}
