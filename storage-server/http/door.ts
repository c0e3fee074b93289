/**
 * What answers over HTTP have in common, whether asked for as files or as objects: one answer at a time on a connection,
 * bodies block by block at the pace of whoever takes them, an end for those who do not, and draining. A body is of one
 * version from its first byte to its last; when that can't be kept, the connection ends before the announced length, so
 * that no part is ever taken for the whole.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Guard } from '../access/guard.ts';
import type { OpenFiles } from '../open-files.ts';
import type { RegionHolder } from '../region-holder.ts';
import { type CutReason, DoorCounters, type RequestKind } from './door-counters.ts';
import { BLOCK_BYTES } from './limits.ts';
import type { PlannedAnswer } from './plan-answer.ts';
import { type Block, BlockFault, RegionBlocks } from './region-blocks.ts';
import type { Representation, Sight } from './representation.ts';

export interface DoorOptions {
  /** All that there is. */
  readonly regions: RegionHolder;
  /** Who may see what of it. */
  readonly guard: Guard;
  readonly files: OpenFiles;
  /** Time without progress after which a peer that does not take its bytes is dropped, milliseconds. */
  readonly stallMs: number;
  /** Told when a file turns out not to be what it was. */
  readonly onStale: () => void;
  readonly log: (event: string, peer: string, detail: string) => void;
}

export interface TextAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly text: string;
}

/** An answer that was cut, and why. */
class Cut extends Error {
  override readonly name = 'Cut';
  readonly reason: CutReason;

  constructor(reason: CutReason) {
    super(reason);
    this.reason = reason;
  }
}

export class Door {
  readonly counters = new DoorCounters();
  /** Of all that there is. */
  readonly all: Sight;
  readonly guard: Guard;
  readonly #blocks: RegionBlocks;
  readonly #stallMs: number;
  readonly #log: DoorOptions['log'];
  readonly #last = new WeakMap<object, Promise<void>>();
  readonly #active = new Set<ServerResponse>();
  #closing = false;
  #idle: (() => void) | undefined;

  constructor({ regions, guard, files, stallMs, onStale, log }: DoorOptions) {
    this.all = { regions, isGood: true };
    this.guard = guard;
    this.#blocks = new RegionBlocks(files, onStale);
    this.#stallMs = stallMs;
    this.#log = log;
  }

  get closing(): boolean {
    return this.#closing;
  }

  /** Answers a request when those before it on its connection are answered: pipelined ones take no memory. */
  serve(request: IncomingMessage, response: ServerResponse, answer: () => Promise<void>): void {
    const { socket } = request;
    this.#active.add(response);
    this.counters.active = this.#active.size;
    response.on('error', () => {});
    const done = (this.#last.get(socket) ?? Promise.resolve())
      .then(() => (response.destroyed ? undefined : answer()))
      .then(() => this.#flushed(request, response))
      .catch((error) => {
        this.#log('bug', peerOf(request), `${(error as Error).stack}`);
        response.destroy();
      })
      .then(() => this.#ended(response));
    this.#last.set(socket, done);
  }

  /** Sends a planned answer, with its bytes unless it is for HEAD; throws BlockFault while nothing has been sent. */
  async send(
    kind: RequestKind,
    request: IncomingMessage,
    response: ServerResponse,
    plan: PlannedAnswer,
    representation: Representation,
  ): Promise<void> {
    const { status, headers, start, length } = plan;
    const isHead = request.method === 'HEAD';
    const first = isHead || length === 0 ? undefined : await this.#blocks.read(representation, start, length);
    if (response.destroyed) return;
    this.counters.count(kind, status);
    response.writeHead(status, { ...headers, 'X-Content-Type-Options': 'nosniff', ...endOf(request, this.#closing) });
    if (first === undefined) {
      response.end();
      return;
    }
    try {
      await this.#stream(kind, response, representation, first, start, start + length);
    } catch (error) {
      response.destroy();
      if (!(error instanceof Cut) && !(error instanceof BlockFault)) throw error;
      const reason = error instanceof Cut ? error.reason : 'changed';
      this.counters.cut(this.#closing && reason === 'closed' ? 'stopped' : reason);
      if (reason !== 'closed') this.#log('dropped', peerOf(request), `an answer was cut: ${CUT_TEXTS[reason]}`);
    }
  }

  /** Waits for answers under way for at most `drainMs`, then cuts them. */
  async close(drainMs: number): Promise<void> {
    this.#closing = true;
    if (this.#active.size === 0) return;
    const timer = setTimeout(() => {
      for (const response of this.#active) response.destroy();
    }, drainMs);
    await new Promise<void>((resolve) => {
      this.#idle = resolve;
    });
    clearTimeout(timer);
  }

  /** Sends an answer whose body is a text of ours. */
  say(
    kind: RequestKind,
    request: IncomingMessage,
    response: ServerResponse,
    { status, headers, text }: TextAnswer,
  ): void {
    if (response.destroyed) return;
    const body = Buffer.from(text);
    this.counters.count(kind, status);
    response.writeHead(status, {
      'Content-Length': body.byteLength,
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      ...headers,
      ...endOf(request, this.#closing),
    });
    response.end(request.method === 'HEAD' ? undefined : body);
  }

  /** Waits until an answer that is complete has left this process. */
  async #flushed(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (response.destroyed || response.writableFinished) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        this.counters.cut('stalled');
        this.#log('dropped', peerOf(request), `an answer was cut: ${CUT_TEXTS.stalled}`);
        response.destroy();
      }, this.#stallMs);
      const settle = (): void => {
        clearTimeout(timer);
        resolve();
      };
      response.once('finish', settle);
      response.once('close', settle);
    });
  }

  #ended(response: ServerResponse): void {
    this.#active.delete(response);
    this.counters.active = this.#active.size;
    if (this.#active.size === 0) this.#idle?.();
  }

  async #stream(
    kind: RequestKind,
    response: ServerResponse,
    representation: Representation,
    first: Block,
    start: number,
    end: number,
  ): Promise<void> {
    let block: Block = first;
    let at = start + first.length;
    for (;;) {
      // The next block is read while this one is sent.
      const next = at < end ? this.#blocks.read(representation, at, Math.min(BLOCK_BYTES, end - at)) : undefined;
      next?.catch(() => {});
      await write(response, block.parts, this.#stallMs);
      this.counters.sent(kind, block.length);
      this.#blocks.give(block);
      if (next === undefined) break;
      block = await next;
      at += block.length;
    }
    response.end();
  }
}

const CUT_TEXTS: Readonly<Record<CutReason, string>> = {
  changed: 'what it is about has changed or is not served any more',
  stalled: 'the peer does not take its bytes',
  closed: 'the peer has gone',
  stopped: 'the server is shutting down',
};

function peerOf({ socket }: IncomingMessage): string {
  return `${socket.remoteAddress ?? '?'}:${socket.remotePort ?? 0}`;
}

/** A body that a peer sends is not read, so that its connection can't be used for a next request. */
function endOf(request: IncomingMessage, closing: boolean): { Connection?: 'close' } {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
  const hasBody = coding !== undefined || (length !== undefined && length !== '0');
  return hasBody || closing ? { Connection: 'close' } : {};
}

/** Hands bytes to the socket and waits until it has passed them on. Throws Cut. */
function write(response: ServerResponse, parts: readonly Uint8Array[], stallMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    if (response.destroyed) {
      reject(new Cut('closed'));
      return;
    }
    const settle = (error?: Error): void => {
      clearTimeout(timer);
      response.off('close', closed);
      if (error === undefined) resolve();
      else reject(error);
    };
    const closed = (): void => settle(new Cut('closed'));
    const timer = setTimeout(() => settle(new Cut('stalled')), stallMs);
    response.on('close', closed);
    let pending = parts.length;
    if (parts.length > 1) response.cork();
    for (const part of parts) {
      response.write(part, (error) => {
        if (error) settle(new Cut('closed'));
        else if (--pending === 0) settle();
      });
    }
    if (parts.length > 1) response.uncork();
  });
}
