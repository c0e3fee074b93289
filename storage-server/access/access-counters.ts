/** Who did not get in, by listener; totals since the start. Plain numbers: metrics read them at a scrape. */
import { type Collector, METRICS } from '../../metrics/index.ts';

const DOORS = ['queue_pair', 'http', 's3'] as const;
export type DoorName = (typeof DOORS)[number];

export class AccessCounters {
  /** Attempts without a token, or a signature, that is known. */
  readonly authentication: Record<DoorName, number> = { queue_pair: 0, http: 0, s3: 0 };

  /** For the registry of a server's metrics; of TLS what the certificates know. */
  collector(
    certificates: { readonly endMs: number; readonly failures: Readonly<Record<DoorName, number>> } | undefined,
  ): Collector {
    return (samples) => {
      for (const door of DOORS) {
        samples.add(METRICS.serveAuthenticationFailures, this.authentication[door], { door });
        if (certificates !== undefined) samples.add(METRICS.serveTlsFailures, certificates.failures[door], { door });
      }
      if (certificates !== undefined) samples.add(METRICS.serveCertificateEnd, Math.floor(certificates.endMs / 1000));
    };
  }
}
