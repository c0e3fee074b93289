/**
 * One request and its answer over a pool of connections: headers and bytes go to a sink as they come, in the memory that
 * they were received in, so that who knows where they belong copies them there once. It settles once; after that the
 * sink hears nothing any more.
 */
import type { SecureContextOptions } from 'node:tls';
import { Agent, type buildConnector, type Dispatcher } from 'undici';
import { FetchError } from '../errors.ts';
import type { AnswerHeaders } from './answer.ts';
import { connectionError } from './connection-errors.ts';
import { HEADER_BYTES_MAX, IDLE_MS } from './limits.ts';

export interface PoolOptions {
  /** Connections to one host. */
  readonly connections: number;
  readonly connectMs: number;
  /** Time without an answer's headers, or without more of its bytes. */
  readonly stallMs: number;
  /** For https. */
  readonly tls: SecureContextOptions;
}

/** Connections that requests go over. */
export type Pool = Dispatcher;

/** Connections of one source: no other one shares them, and they end with it. */
export function openPool({ connections, connectMs, stallMs, tls }: PoolOptions): Pool {
  return new Agent({
    connections,
    pipelining: 1,
    headersTimeout: stallMs,
    bodyTimeout: stallMs,
    keepAliveTimeout: IDLE_MS,
    maxHeaderSize: HEADER_BYTES_MAX,
    connect: { timeout: connectMs, ...(tls as buildConnector.BuildOptions) },
  });
}

export interface ExchangeRequest {
  readonly method?: string;
  /** `https://host:port` */
  readonly origin: string;
  /** With the query, encoded, from its "/" on. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

/** Takes an answer. What it throws ends the exchange, which fails with it. */
export interface AnswerSink {
  onHeaders(status: number, headers: AnswerHeaders): void;
  /** False when no more is needed: the exchange succeeds, and what else would come is not waited for. */
  onBytes(bytes: Uint8Array): boolean;
}

/** Resolves when the answer has ended, or the sink has enough. Rejects with a FetchError, or what the sink threw. */
export function exchange(pool: Pool, request: ExchangeRequest, sink: AnswerSink, signal?: AbortSignal): Promise<void> {
  const where = request.origin;
  return new Promise((resolve, reject) => {
    let started: Dispatcher.DispatchController | undefined;
    let isSettled = false;
    const settle = (act: () => void): void => {
      if (isSettled) return;
      isSettled = true;
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
    pool.dispatch(
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
          if (isSettled) controller.abort(new Error('no longer needed'));
        },
        onResponseStart(_controller, status, headers) {
          if (isSettled || status < 200) return;
          try {
            sink.onHeaders(status, headers);
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
        onResponseError: (_controller, error) => settle(() => reject(connectionError(error, where))),
      },
    );
  });
}
