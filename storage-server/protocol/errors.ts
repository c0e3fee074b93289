/** The one error class of protocol/: bytes that break the wire format or the directory's rules. Never retryable. */
export type ProtocolErrorCode =
  | 'MAGIC' // not our protocol, or the stream is out of step
  | 'VERSION' // a version that this code does not speak
  | 'FRAME' // a field of a frame has a value that it may not have
  | 'LENGTH' // a length over its bound, or bytes missing
  | 'NUMBER' // a number that JavaScript can't hold exactly, or an addition that overflows
  | 'THRIFT' // a Thrift structure is cut, too deep, too large or of the wrong type
  | 'CHECKSUM' // the directory's CRC-32 does not match
  | 'NAME' // a path that the directory may not hold
  | 'DIRECTORY' // entries that contradict each other or the region
  | 'RANGE'; // a range outside a file

export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
  readonly code: ProtocolErrorCode;
  /** The message without its prefix. */
  readonly reason: string;
  /** Address of a region that it is about, where it is about one. */
  readonly address: number | undefined;

  constructor(code: ProtocolErrorCode, reason: string, address?: number) {
    super(`protocol ${code}: ${reason}`);
    this.code = code;
    this.reason = reason;
    this.address = address;
  }
}
