/** The one error class of metrics/: what keeps an endpoint from starting, and what would be a bug of whoever measures. */
export type MetricsErrorCode =
  | 'LISTEN' // the endpoint's address can't be listened on
  | 'LABEL'; // a label's value is none that the metric's definition allows

export class MetricsError extends Error {
  override readonly name = 'MetricsError';
  readonly code: MetricsErrorCode;
  /** The message without its prefix. */
  readonly reason: string;

  constructor(code: MetricsErrorCode, reason: string, options: { cause?: unknown } = {}) {
    super(`metrics ${code}: ${reason}`, options);
    this.code = code;
    this.reason = reason;
  }
}
