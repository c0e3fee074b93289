/** Decoding in the caller's thread, behind the seam that decoder threads are behind: steps at the next microtask. */
import { ChunkDecoder, type ChunkSpec, type DecodeEnvironment } from '../../decode/index.ts';
import type { ChunkDecoding, DecodeFlow, DecodeFlowEvents } from '../decoded/chunk-decoding.ts';

export class InlineDecoding implements ChunkDecoding {
  readonly count: number;
  open_ = 0;
  readonly #environment: DecodeEnvironment;

  constructor(environment: DecodeEnvironment, count = 2) {
    this.#environment = environment;
    this.count = count;
  }

  open(spec: ChunkSpec, events: DecodeFlowEvents): DecodeFlow | undefined {
    if (this.open_ >= this.count) return undefined;
    this.open_++;
    // made anew when it is told where values go, which is before anything else
    let decoder = new ChunkDecoder(this.#environment, spec);
    let running = false;
    let over = false;
    const end = (): void => {
      over = true;
      running = false;
      this.open_--;
      decoder.close();
    };
    const step = (): void => {
      if (over || !running) return;
      try {
        const result = decoder.step();
        if (result === 'input') return;
        running = false;
        if (result === 'memory') {
          events.memoryShort(this.#environment.pool.refusedBytes, this.#environment.pool.usedBytes);
          return;
        }
        const segment = result === 'segment' ? decoder.takeSegment() : undefined;
        const { consumed } = decoder.input;
        const isEnd = result === 'end' || decoder.isDone;
        if (segment !== undefined) events.segment(segment);
        events.consumed(consumed);
        if (isEnd && !over) {
          end();
          events.ended(true);
        } else if (!over) events.idle();
      } catch (error) {
        end();
        events.failed(error as Error);
      }
    };
    return {
      get running() {
        return running;
      },
      place: (place) => {
        decoder.close();
        decoder = new ChunkDecoder(this.#environment, { ...spec, place });
      },
      add: (piece) => decoder.input.add(piece),
      arrived: (bytes) => {
        decoder.input.arrived = bytes;
        queueMicrotask(step);
      },
      run: () => {
        running = true;
        queueMicrotask(step);
      },
      close: () => {
        queueMicrotask(() => {
          if (over) return;
          end();
          events.ended(false);
        });
      },
    };
  }
}
