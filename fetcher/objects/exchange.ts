/**
 * One request and its answer over a pool of connections: headers and bytes go to a sink as they come, in the memory that
 * they were received in, so that who knows where they belong copies them there once. It settles once; after that the
 * sink hears nothing any more.
 */
import type { SecureContextOptions } from 'node:tls';
import { Agent, type buildConnector, type Dispatcher } from 'undici';
import { FetchError } from '../errors.ts';
import type { Tell } from '../transport/events.ts';
import type { TransportCounters } from '../transport/transport.ts';
import type { AnswerHeaders } from './answer.ts';
import { connectionError } from './connection-errors.ts';
import { HEADER_BYTES_MAX, IDLE_MS, LOOK_STALLS } from './limits.ts';

export interface PoolOptions {
  /** Connections to one host. */
  readonly connections: number;
  readonly connectMs: number;
  /** Time without an answer's headers, or without more of its bytes. */
  readonly stallMs: number;
  /** For https. */
  readonly tls: SecureContextOptions;
  readonly counters: TransportCounters;
  /** Told of connections that are made. */
  readonly tell?: Tell | undefined;
}

/** Connections that requests go over. */
export interface Pool {
  readonly dispatcher: Dispatcher;
  /** Time that a look at a file or a page of a listing may take, milliseconds. */
  readonly lookMs: number;
  /** Something there has answered before. */
  isProven: boolean;
  /** A request is being sent. */
  onRequest(): void;
  destroy(): Promise<void>;
}

/** Connections of one source: no other one shares them, and they end with it. */
export function openPool({ connections, connectMs, stallMs, tls, counters, tell }: PoolOptions): Pool {
  /** Connections that nothing has been sent over. */
  let fresh = 0;
  const dispatcher = new Agent({
    connections,
    pipelining: 1,
    headersTimeout: stallMs,
    bodyTimeout: stallMs,
    keepAliveTimeout: IDLE_MS,
    maxHeaderSize: HEADER_BYTES_MAX,
    connect: { timeout: connectMs, ...(tls as buildConnector.BuildOptions) },
  });
  dispatcher.on('connect', ({ origin }) => {
    fresh++;
    counters.connections++;
    tell?.({ kind: 'connected', origin, connections: counters.connections, reused: counters.requestsReusing });
  });
  return {
    dispatcher,
    lookMs: LOOK_STALLS * stallMs,
    isProven: false,
    onRequest() {
      if (fresh > 0) fresh--;
      else counters.requestsReusing++;
    },
    destroy: () => dispatcher.destroy(),
  };
}

export interface ExchangeRequest {
  readonly method?: string;
  /** `https://host:port` */
  readonly origin: string;
  /** With the query, encoded, from its "/" on. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** A look at a file or a page of a listing: its answer is short, and comes within `lookMs` or is none. */
  readonly isLook?: boolean;
}

/** Takes an answer. What it throws ends the exchange, which fails with it. */
export interface AnswerSink {
  /** `latencyMs` passed since the request was sent over a connection. */
  onHeaders(status: number, headers: AnswerHeaders, latencyMs: number): void;
  /** False when no more is needed: the exchange succeeds, and what else would come is not waited for. */
  onBytes(bytes: Uint8Array): boolean;
}

/** Resolves when the answer has ended, or the sink has enough. Rejects with a FetchError, or what the sink threw. */
export function exchange(pool: Pool, request: ExchangeRequest, sink: AnswerSink, signal?: AbortSignal): Promise<void> {
  const where = request.origin;
  return new Promise((resolve, reject) => {
    let started: Dispatcher.DispatchController | undefined;
    let sentMs = 0;
    let isSettled = false;
    let timer: NodeJS.Timeout | undefined;
    const settle = (act: () => void): void => {
      if (isSettled) return;
      isSettled = true;
      clearTimeout(timer);
      signal?.removeEventListener('abort', cancel);
      act();
    };
    /** Settles before the end of the answer, whose connection is of no use then. */
    const cut = (act: () => void): void => {
      settle(act);
      started?.abort(new Error('no longer needed'));
    };
    const fail = (error: unknown): void => cut(() => reject(error));
    const cancel = (): void => fail(new FetchError('CANCELLED', `${where}: cancelled`));
    if (signal?.aborted) return cancel();
    signal?.addEventListener('abort', cancel, { once: true });
    if (request.isLook) {
      const late = (): void =>
        fail(new FetchError('STALLED', `${where}: no whole answer within ${pool.lookMs} ms`, { retryable: true }));
      timer = setTimeout(late, pool.lookMs);
    }
    pool.dispatcher.dispatch(
      {
        origin: request.origin,
        path: request.path,
        method: request.method ?? 'GET',
        headers: request.headers as Record<string, string>,
        ...(request.body === undefined ? {} : { body: request.body }),
      },
      {
        onRequestStart(controller) {
          started = controller;
          sentMs = performance.now();
          pool.onRequest();
          if (isSettled) controller.abort(new Error('no longer needed'));
        },
        onResponseStart(_controller, status, headers) {
          pool.isProven = true;
          if (isSettled || status < 200) return;
          try {
            sink.onHeaders(status, headers, performance.now() - sentMs);
          } catch (error) {
            fail(error);
          }
        },
        onResponseData(_controller, bytes) {
          if (isSettled) return;
          try {
            if (!sink.onBytes(bytes)) cut(resolve);
          } catch (error) {
            fail(error);
          }
        },
        onResponseEnd: () => settle(resolve),
        onResponseError: (_controller, error) => settle(() => reject(connectionError(error, where, pool.isProven))),
      },
    );
  });
}
