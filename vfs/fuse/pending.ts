/**
 * Requests that wait for a content: measured, opened, read. Each is answered exactly once, whatever happens first: the
 * content's answer, an interrupt, the time limit, its file's end, or the session's. A bounded number is worked on at a
 * time, a larger one waits in order, and more are refused, so that memory is bounded whoever asks.
 */
import { MountError } from '../errors.ts';
import type { RequestSignal } from './content.ts';
import { ACTIVE_REQUESTS_MAX, ANSWER_CHECK_MS, INTERRUPT_GRACE_MS, PENDING_REQUESTS_MAX } from './limits.ts';
import type { FileNode } from './nodes.ts';

/** One request on its way; what its content is given as signal. */
export class PendingRequest implements RequestSignal {
  aborted = false;
  onAbort: (() => void) | undefined = undefined;
  readonly unique: number;
  readonly node: FileNode;
  readonly handle: number;
  readonly pid: number;
  readonly sinceMs: number;
  /** Answered, one way or the other. */
  settled = false;
  /** Its content was asked. */
  running = false;
  /** Sends the answer to what failed. */
  readonly fail: (error: unknown) => void;
  /** Asks the content. */
  readonly run: (request: PendingRequest) => void;
  #controller: AbortController | undefined;

  constructor(
    unique: number,
    node: FileNode,
    handle: number,
    pid: number,
    sinceMs: number,
    run: (request: PendingRequest) => void,
    fail: (error: unknown) => void,
  ) {
    this.unique = unique;
    this.node = node;
    this.handle = handle;
    this.pid = pid;
    this.sinceMs = sinceMs;
    this.run = run;
    this.fail = fail;
  }

  get abortSignal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.aborted) this.#controller.abort();
    return this.#controller.signal;
  }

  /** Tells the content. Its own errors are of no interest any more. */
  abort(): void {
    this.aborted = true;
    try {
      this.onAbort?.();
      this.#controller?.abort();
    } catch {}
  }
}

export interface PendingOptions {
  readonly answerMs: number;
  /** Whether a process is about to end and can't use an answer. */
  readonly isDying: (pid: number) => boolean;
}

export class PendingRequests {
  /** Answered by the time limit, by interrupts, and refused for their number. */
  timeouts = 0;
  interrupts = 0;
  refused = 0;
  /** The most there ever were. */
  most = 0;
  readonly #answerMs: number;
  readonly #isDying: (pid: number) => boolean;
  /** By unique, oldest first. */
  readonly #all = new Map<number, PendingRequest>();
  readonly #waiting: PendingRequest[] = [];
  #waitingHead = 0;
  #active = 0;
  #pumping = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: PendingOptions) {
    this.#answerMs = options.answerMs;
    this.#isDying = options.isDying;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Runs the request now or when its turn comes. */
  start(request: PendingRequest): void {
    if (this.#all.size >= PENDING_REQUESTS_MAX || this.#all.has(request.unique)) {
      this.refused++;
      request.settled = true;
      request.fail(new MountError('CROWDED', `${this.#all.size} requests wait already`));
      return;
    }
    this.#all.set(request.unique, request);
    if (this.#all.size > this.most) this.most = this.#all.size;
    if (this.#active >= ACTIVE_REQUESTS_MAX) this.#waiting.push(request);
    else this.#run(request);
    if (this.#timer === undefined && this.#all.size > 0) {
      this.#timer = setInterval(() => this.#checkTime(), ANSWER_CHECK_MS).unref();
    }
  }

  /** Takes the right to answer; false when it has been answered. */
  settle(request: PendingRequest): boolean {
    if (request.settled) return false;
    request.settled = true;
    this.#all.delete(request.unique);
    return true;
  }

  /** To be called after the answer was sent, by whoever settled it after it ran. */
  finished(): void {
    this.#active--;
    this.#pump();
  }

  /** Ends a request with an error, and tells its content. */
  abort(request: PendingRequest, error: MountError): void {
    if (!this.settle(request)) return;
    request.fail(error);
    request.abort();
    if (request.running) this.finished();
  }

  abortWhere(matches: (request: PendingRequest) => boolean, error: MountError): void {
    const aborted = [...this.#all.values()].filter(matches);
    // those that wait first: the end of one that runs would start them
    for (const request of aborted) if (!request.running) this.abort(request, error);
    for (const request of aborted) this.abort(request, error);
  }

  /**
   * A signal came to who waits. One that ends the process needs no answer; another one gets a moment, because few
   * programs expect EINTR of a file, and many have timers.
   */
  interrupt(unique: number): void {
    const request = this.#all.get(unique);
    if (request === undefined) return;
    const end = () => {
      if (request.settled) return;
      this.interrupts++;
      this.abort(request, new MountError('INTERRUPTED', 'interrupted by a signal'));
    };
    if (this.#isDying(request.pid)) end();
    else setTimeout(end, INTERRUPT_GRACE_MS).unref();
  }

  #run(request: PendingRequest): void {
    this.#active++;
    request.running = true;
    try {
      request.run(request);
    } catch (error) {
      if (!this.settle(request)) return;
      request.fail(error);
      this.finished();
    }
  }

  /** Contents that answer at once would recurse: one loop runs whatever may run. */
  #pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    while (this.#active < ACTIVE_REQUESTS_MAX && this.#waitingHead < this.#waiting.length) {
      const request = this.#waiting[this.#waitingHead++]!;
      if (!request.settled) this.#run(request);
    }
    if (this.#waitingHead === this.#waiting.length) {
      this.#waiting.length = 0;
      this.#waitingHead = 0;
    }
    this.#pumping = false;
  }

  #checkTime(): void {
    const now = performance.now();
    for (const request of this.#all.values()) {
      if (now - request.sinceMs < this.#answerMs) break;
      this.timeouts++;
      this.abort(request, new MountError('TIMEOUT', `no answer within ${this.#answerMs} ms`));
    }
    if (this.#all.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
