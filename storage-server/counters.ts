/** What a server counts; totals since it started, except where said. */
export interface ServerCounters {
  /** Connections open now. */
  connections: number;
  connectionsTotal: number;
  /** Handshakes answered with a refusal. */
  refused: number;
  /** Connections that sent something else than the protocol, or no hello in time. */
  garbage: number;
  /** READs completed with success. */
  reads: number;
  /** READs completed with an error. */
  readErrors: number;
  /** Bytes handed to sockets, headers included. */
  bytesSent: number;
  /** Peers dropped because they did not take their bytes. */
  stalled: number;
}

export function newServerCounters(): ServerCounters {
  return {
    connections: 0,
    connectionsTotal: 0,
    refused: 0,
    garbage: 0,
    reads: 0,
    readErrors: 0,
    bytesSent: 0,
    stalled: 0,
  };
}
