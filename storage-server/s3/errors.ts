/** The one error class of the S3 API: what a client is told, by the codes of S3. */

const STATUSES = {
  AccessDenied: 403,
  AuthorizationHeaderMalformed: 400,
  AuthorizationQueryParametersError: 400,
  InternalError: 500,
  InvalidArgument: 400,
  InvalidRange: 416,
  InvalidRequest: 400,
  InvalidURI: 400,
  MethodNotAllowed: 405,
  NoSuchBucket: 404,
  NoSuchKey: 404,
  NoSuchVersion: 404,
  NotImplemented: 501,
  PreconditionFailed: 412,
  RequestTimeTooSkewed: 403,
  ServiceUnavailable: 503,
  SignatureDoesNotMatch: 403,
  XAmzContentSHA256Mismatch: 400,
} as const;

export type S3ErrorCode = keyof typeof STATUSES;

export class S3Error extends Error {
  override readonly name = 'S3Error';
  readonly code: S3ErrorCode;

  constructor(code: S3ErrorCode, message: string) {
    super(message);
    this.code = code;
  }

  get status(): number {
    return STATUSES[this.code];
  }
}
