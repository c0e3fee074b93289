/**
 * An HTTP response as an output: bytes go at the client's pace. A client that takes nothing for too long is cut off,
 * and so is one whose answer can't be completed: its connection is reset, so that what came of it is never taken for all.
 */
import type { ServerResponse } from 'node:http';
import { CommandError } from '../errors.ts';
import type { Output } from '../output/output.ts';

export class ResponseOutput implements Output {
  bytes = 0;
  readonly #response: ServerResponse;
  readonly #stalledMs: number;
  #isStalled = false;

  /** `stalledMs`: time in which the client takes nothing. */
  constructor(response: ServerResponse, stalledMs: number) {
    this.#response = response;
    this.#stalledMs = stalledMs;
  }

  /** Whether the client was cut off for having taken nothing. */
  get isStalled(): boolean {
    return this.#isStalled;
  }

  async write(data: Uint8Array): Promise<void> {
    if (data.byteLength === 0) return;
    const response = this.#response;
    if (response.destroyed) throw closed();
    const hasRoom = response.write(data);
    this.bytes += data.byteLength;
    if (!hasRoom) await this.#untilTaken('drain');
  }

  async finish(): Promise<void> {
    if (this.#response.destroyed) throw closed();
    this.#response.end();
    if (!this.#response.writableFinished) await this.#untilTaken('finish');
  }

  async discard(): Promise<void> {
    cutOff(this.#response);
  }

  /** A socket's own timer starts again with every byte that the client takes. */
  #untilTaken(event: 'drain' | 'finish'): Promise<void> {
    const response = this.#response;
    const { socket } = response;
    return new Promise((resolve, reject) => {
      const settle = (error?: Error): void => {
        response.off(event, onTaken);
        response.off('close', onClose);
        response.off('timeout', onTimeout);
        // after the end of an answer the server waits for the next request with a time of its own
        if (event === 'drain' && !socket?.destroyed) socket?.setTimeout(0);
        if (error === undefined) resolve();
        else reject(error);
      };
      const onTaken = (): void => settle();
      const onClose = (): void => settle(closed());
      const onTimeout = (): void => {
        this.#isStalled = true;
        cutOff(response);
      };
      response.on(event, onTaken);
      response.on('close', onClose);
      response.on('timeout', onTimeout);
      socket?.setTimeout(this.#stalledMs);
      if (response.destroyed) onClose();
    });
  }
}

function closed(): CommandError {
  return new CommandError('OUTPUT_CLOSED', 'the client has gone');
}

/** Ends the connection so that the client sees an error, whatever it has got so far. */
export function cutOff(response: ServerResponse): void {
  const { socket } = response;
  if (socket === null) response.destroy();
  else socket.resetAndDestroy();
}
