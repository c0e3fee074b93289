/** The one error class of verbs/: RDMA can't be had, or not any more. In words for people, with what to do. */
export type VerbsErrorCode =
  | 'PLATFORM' // not Linux on x86-64 or arm64
  | 'NO_LIBRARY' // libibverbs or koffi is not installed
  | 'NO_DEVICE' // no RDMA device, or none of that name
  | 'NO_PORT' // the device has no active port with an address
  | 'LAYOUT' // the installed library does not lay out its structures as expected
  | 'MEMORY' // memory can't be had, or not be locked
  | 'RESOURCES' // the device has no more queue pairs, or refuses to make one
  | 'CONNECT'; // a queue pair can't be connected to the other end

export class VerbsError extends Error {
  override readonly name = 'VerbsError';
  readonly code: VerbsErrorCode;
  /** The message without its prefix. */
  readonly reason: string;

  constructor(code: VerbsErrorCode, reason: string, options?: ErrorOptions) {
    super(`verbs ${code}: ${reason}`, options);
    this.code = code;
    this.reason = reason;
  }
}

export function differs(what: string): VerbsError {
  return new VerbsError('LAYOUT', `the installed libibverbs lays out struct ${what} in another way: RDMA is not used`);
}
