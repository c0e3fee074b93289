/** What went wrong with TLS, in words that say what to do, from the codes of Node and OpenSSL. */

const UNKNOWN_AUTHORITY = 'its authority is not known here: --ca-file names it';

/** What is wrong with the certificate of a server. */
const CERTIFICATE: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'it is signed by itself: --ca-file with the certificate itself accepts it',
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  CERT_SIGNATURE_FAILURE: 'the authority of --ca-file has not signed it',
  CERT_HAS_EXPIRED: 'it has expired: the server needs a new one, unless the clock here is wrong',
  CERT_NOT_YET_VALID: 'it is not valid yet: one of the clocks is wrong',
  INVALID_PURPOSE: 'it is not made for servers',
  ERR_TLS_CERT_ALTNAME_INVALID:
    'it is for other names than this one: ask for one of those, or have this one put into it',
};

/** What a server says when it ends a handshake. */
const ALERT: Readonly<Record<string, string>> = {
  TLSV13_ALERT_CERTIFICATE_REQUIRED: 'the server asks for a client certificate: --client-cert and --client-key name it',
  TLSV1_ALERT_UNKNOWN_CA: 'the server does not know the authority of the client certificate',
  SSLV3_ALERT_BAD_CERTIFICATE: 'the server does not accept the client certificate',
  SSLV3_ALERT_CERTIFICATE_EXPIRED: 'the client certificate has expired',
  TLSV1_ALERT_PROTOCOL_VERSION: 'the server does not speak TLS 1.3, or wants nothing else',
  TLSV1_ALERT_NO_APPLICATION_PROTOCOL: 'what answers under TLS there is something else: is this the right port?',
};

export interface TlsFailure {
  readonly words: string;
  /** The server speaks no TLS at all. */
  readonly isPlain: boolean;
}

/** The failure in words; undefined for an error that is not about TLS. */
export function tlsFailure({
  code = '',
  message,
}: {
  code?: string | undefined;
  message: string;
}): TlsFailure | undefined {
  const certificate = CERTIFICATE[code];
  if (certificate !== undefined) {
    const names = code === 'ERR_TLS_CERT_ALTNAME_INVALID' ? ` (${namesOf(message)})` : '';
    return { words: `the server's certificate is not accepted, ${certificate}${names}`, isPlain: false };
  }
  const alert = ALERT[code.replace(/^ERR_SSL_/, '')];
  if (alert !== undefined) return { words: alert, isPlain: false };
  if (
    /^(ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|UNEXPECTED_MESSAGE|BAD_RECORD_TYPE)|EPROTO)$/.test(
      code,
    )
  ) {
    return { words: `what answers there is not TLS (${code})`, isPlain: true };
  }
  if (/CERT|SELF_SIGNED|UNABLE_TO_(VERIFY|GET_ISSUER)|ALTNAME/.test(code)) {
    return { words: `the server's certificate is not accepted (${code}): ${UNKNOWN_AUTHORITY}`, isPlain: false };
  }
  if (code.startsWith('ERR_SSL')) return { words: `the TLS handshake failed (${code})`, isPlain: false };
  return undefined;
}

/** The names that a certificate is for, out of Node's message. */
function namesOf(message: string): string {
  const [, names] = /altnames: (.{1,300})/s.exec(message) ?? [];
  return `it holds ${names?.replace(/\s+/g, ' ') ?? 'none'}`;
}
