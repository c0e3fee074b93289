/**
 * What a link posts READs to: the requester's end of a queue pair, over a connection (queue-pair.ts) or over RDMA
 * (verbs-pair.ts). Every posted request completes exactly once, in post order.
 */
export type QueuePairState = 'RESET' | 'INIT' | 'RTR' | 'RTS' | 'ERR';

export interface WorkRequest {
  readonly wrId: number;
  readonly rkey: number;
  readonly address: number;
  /** Where the bytes go; its length is the READ's. May be a view of shared memory. */
  readonly into: Uint8Array;
  /** The first `bytes` have landed (and passed their checksum, if there is one). */
  readonly onLanded?: (bytes: number) => void;
}

export interface Completion {
  readonly wrId: number;
  readonly status: number;
  /** In words, on an error. */
  readonly reason: string;
  /** With an error of the server: what was asked for was there once. */
  readonly stale: boolean;
  /** Payload bytes that went into the destination, whatever the status. */
  readonly landed: number;
}

export type PostResult = 'POSTED' | 'WRONG_STATE' | 'QUEUE_FULL' | 'BAD_REQUEST';

export interface Requester {
  readonly state: QueuePairState;
  /** Requests on the wire. */
  readonly outstanding: number;
  /** Posts a READ; anything but POSTED changes nothing. */
  post(request: WorkRequest): PostResult;
  /**
   * Gives a request up: nothing more lands in its destination once `onFree` has been called, which may be at once, and is
   * at the latest when the pair goes to ERR. Returns what had landed.
   */
  abandon(wrId: number, onFree: () => void): number;
}

/** What is told of a requester. */
export interface RequesterHost {
  onCompletion(completion: Completion): void;
  /** The pair went to ERR: nothing may land any more when this returns. Called before the completions. */
  onError(reason: string): void;
  /** Payload bytes came over the wire; `discarded` of them for a request that was abandoned. */
  onPayload(bytes: number, discarded: number): void;
}
