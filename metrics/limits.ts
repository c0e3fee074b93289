/** The bounds of metrics/, each with its unit and its reason. */

/** Series of one metric that are there with zero before anything happened; more would be mostly noise. */
export const ZERO_SERIES_MAX = 32;

/** Decoders that have series of their own: as many as an engine may have. */
export const DECODERS_MAX = 256;

/** Characters of a label's text that is not one of a list: versions. */
export const LABEL_TEXT_MAX = 40;

export interface EndpointLimits {
  /** Connections at a time; more are closed at once. A scraper, its spare, probes and a person need a handful. */
  readonly connectionsMax: number;
  /** Bytes of a request's line and headers: Prometheus sends about 300. */
  readonly headerBytesMax: number;
  /** Time for a request to be there, headers and all, milliseconds. */
  readonly requestMs: number;
  /** Time for an answer to be taken, milliseconds. */
  readonly answerMs: number;
  /** Time that a connection is kept for its next request, milliseconds: Prometheus comes every 15 s or more often. */
  readonly keepAliveMs: number;
}

/** For an address that strangers can reach: whoever is slow or silent holds little, and not for long. */
export const ENDPOINT_LIMITS: EndpointLimits = {
  connectionsMax: 64,
  headerBytesMax: 8 * 1024,
  requestMs: 5_000,
  answerMs: 10_000,
  keepAliveMs: 65_000,
};

/** Milliseconds between two looks at whether a connection has used up its time. */
export const ENDPOINT_CHECK_MS = 500;
