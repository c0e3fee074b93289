/**
 * Arrow IPC streams. The package's writer makes the messages; it is asked for one batch at a time and its bytes are
 * handed over before the next, so that no more than a batch waits.
 */
import { type RecordBatch, RecordBatchStreamWriter, type Schema } from 'apache-arrow';
import type { Batch } from '../scan/segments.ts';
import type { Output } from './output.ts';
import type { Sink } from './sink.ts';

/** The writer with its bytes kept here instead of put in its queue, which knows no back-pressure. */
class ChunkWriter extends RecordBatchStreamWriter {
  #chunks: Uint8Array[] = [];

  take(): Uint8Array[] {
    return this.#chunks.splice(0);
  }

  protected override _write(chunk: ArrayBufferView): this {
    if (!this._started || chunk.byteLength === 0) return this;
    this.#chunks.push(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    this._position += chunk.byteLength;
    return this;
  }
}

/** Messages up to this size are joined: a write each would cost more than the copy. */
const JOINED_BYTES_MAX = 64 * 1024;

export class ArrowStreamSink implements Sink {
  readonly #writer = new ChunkWriter({ autoDestroy: false });
  readonly #schema: Schema;
  readonly #toArrow: (batch: Batch) => RecordBatch;
  readonly #output: Output;

  constructor(schema: Schema, toArrow: (batch: Batch) => RecordBatch, output: Output) {
    this.#schema = schema;
    this.#toArrow = toArrow;
    this.#output = output;
  }

  async begin(): Promise<void> {
    this.#writer.reset(undefined, this.#schema);
    await this.#handOver();
  }

  async write(batch: Batch): Promise<void> {
    this.#writer.write(this.#toArrow(batch));
    await this.#handOver();
  }

  async end(): Promise<void> {
    this.#writer.finish();
    await this.#handOver();
  }

  async #handOver(): Promise<void> {
    let small: Uint8Array[] = [];
    let smallBytes = 0;
    for (const chunk of this.#writer.take()) {
      if (chunk.byteLength < JOINED_BYTES_MAX && smallBytes < JOINED_BYTES_MAX) {
        small.push(chunk);
        smallBytes += chunk.byteLength;
        continue;
      }
      await this.#output.write(Buffer.concat(small));
      small = [];
      smallBytes = 0;
      await this.#output.write(chunk);
    }
    await this.#output.write(Buffer.concat(small));
  }
}
