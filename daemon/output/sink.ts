/** The sink seam: where a scan's batches go. Sinks do not release batches; who took them from the scan does. */
import type { Batch } from '../scan/segments.ts';

export interface Sink {
  /** Called once before the first batch, also when none comes. */
  begin(): Promise<void>;
  write(batch: Batch): Promise<void>;
  /** Called once after the last batch, when all went well. */
  end(): Promise<void>;
}
