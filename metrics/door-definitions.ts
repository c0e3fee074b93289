/** Metrics of what a storage server serves over HTTP and S3: a part of the definitions. */
import { forSides } from './definition-makers.ts';
import { DOOR_CODES, DOOR_KINDS, DOORS } from './label-values.ts';

const server = forSides('server');

export const DOOR_METRICS = {
  serveHttpRequests: server.counter(
    'qanat_serve_http_requests_total',
    'count',
    'Requests for files, for the region and of the S3 API, by what they are about and by class of status.',
    { labels: { kind: DOOR_KINDS, code: DOOR_CODES } },
  ),
  serveHttpBytes: server.counter(
    'qanat_serve_http_bytes_total',
    'bytes',
    'Bytes of files and of the region handed to sockets over HTTP and S3.',
    { labels: { kind: DOOR_KINDS } },
  ),
  serveHttpCuts: server.counter(
    'qanat_serve_http_cuts_total',
    'count',
    'Answers over HTTP and S3 that ended before their last byte: what they were about changed, the peer did not take ' +
      'its bytes (stalled) or went (closed), the server stopped.',
    { labels: { reason: ['changed', 'stalled', 'closed', 'stopped'] } },
  ),
  serveHttpActive: server.gauge('qanat_serve_http_answers', 'count', 'Answers over HTTP and S3 under way.'),
  serveAuthenticationFailures: server.counter(
    'qanat_serve_authentication_failures_total',
    'count',
    'Attempts without a token, or without a signature, that is known, by listener.',
    { labels: { door: DOORS } },
  ),
  serveTlsFailures: server.counter(
    'qanat_serve_tls_failures_total',
    'count',
    'TLS handshakes that failed or did not end in time, by listener.',
    { labels: { door: DOORS } },
  ),
  serveCertificateEnd: server.gauge(
    'qanat_serve_certificate_expiry_timestamp_seconds',
    'seconds',
    'When the certificate that new connections get ends, since 1970; 0 without TLS.',
  ),
};
