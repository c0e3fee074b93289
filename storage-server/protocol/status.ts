/**
 * Work completion statuses, numbered as libibverbs numbers them (`enum ibv_wc_status`), and the numbers of handshake
 * refusals. Both are part of the wire format and never change their meaning.
 */
export const WC = {
  /** The bytes have landed. */
  SUCCESS: 0,
  /** The local buffer is shorter than the answer. */
  LOC_LEN_ERR: 1,
  /** Malformed work request. */
  LOC_QP_OP_ERR: 2,
  /** Local buffer or key not valid; nothing was sent. */
  LOC_PROT_ERR: 4,
  /** Still queued when the pair went to ERR. */
  WR_FLUSH_ERR: 5,
  /** The answer does not match the request. */
  BAD_RESP_ERR: 7,
  /** Opcode not allowed, length over the limit, too many outstanding. */
  REM_INV_REQ_ERR: 9,
  /** Unknown or stale rkey, or a range outside the region. */
  REM_ACCESS_ERR: 10,
  /** The server could not read its storage, or the file changed underneath. */
  REM_OP_ERR: 11,
  /** No answer after the retries. */
  RETRY_EXC_ERR: 12,
  /** Server busy too long. */
  RNR_RETRY_EXC_ERR: 13,
  /** Transport lost. */
  FATAL_ERR: 19,
  /** No progress for longer than the stall timer allows. */
  RESP_TIMEOUT_ERR: 20,
} as const;

const STATUS_NAMES = new Map<number, keyof typeof WC>(
  Object.entries(WC).map(([name, status]) => [status, name as keyof typeof WC]),
);

/** The name of a status, or undefined for a number that is none. */
export function statusName(status: number): keyof typeof WC | undefined {
  return STATUS_NAMES.get(status);
}

/** Numbers of handshake refusals; 0 accepts. */
export const REFUSAL = {
  ACCEPTED: 0,
  /** The server does not speak this protocol version. */
  BAD_VERSION: 1,
  /** Authentication is missing or wrong. */
  BAD_AUTHENTICATION: 2,
  /** Too many connections; another attempt later may succeed. */
  NO_RESOURCES: 3,
  /** A depth, an outstanding limit or a READ size of zero or over the ceiling. */
  BAD_PARAMETERS: 4,
  /** The server is shutting down; another attempt later may succeed. */
  CLOSING: 5,
} as const;

export type Refusal = (typeof REFUSAL)[keyof typeof REFUSAL];

const REFUSAL_NAMES = new Map<number, keyof typeof REFUSAL>(
  Object.entries(REFUSAL).map(([name, number]) => [number, name as keyof typeof REFUSAL]),
);

/** The name of a refusal, or undefined for a number that is none. */
export function refusalName(refusal: number): keyof typeof REFUSAL | undefined {
  return REFUSAL_NAMES.get(refusal);
}
