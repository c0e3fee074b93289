/** The conformance suite over S3: a store without versions, listing in small pages, and one with versions and faults. */
import { type OpenTransportOptions, openTransport } from '../transport/open-transport.ts';
import { seededRandom } from './random.ts';
import { isolateSdk, type S3StoreOptions, startS3Store } from './s3-store.ts';
import { type MakeSource, testTransport } from './transport-conformance.ts';
import type { Fault } from './web-server.ts';

isolateSdk({ AWS_ACCESS_KEY_ID: 'AKIATEST', AWS_SECRET_ACCESS_KEY: 'secret' });

const s3 =
  (store: S3StoreOptions = {}, options: OpenTransportOptions = {}): MakeSource =>
  async (t, folder) => {
    const { origin, bucket } = await startS3Store(t, folder, store);
    const opened = await openTransport(`s3://${bucket}/`, { ...options, s3: { endpoint: origin } });
    return { ...opened, keepsVersions: store.versions ?? false };
  };

/** Faults that pass when they are tried again. */
const PASSING: readonly Fault[] = ['reset', 'truncate', 'truncate-chunked', 'busy', 'wrong-range', 'short', 'long'];

const faulty: MakeSource = (t, folder) => {
  const random = seededRandom();
  const fault = (): Fault | undefined => (random.below(5) === 0 ? PASSING[random.below(PASSING.length)] : undefined);
  return s3({ fault, versions: true }, { retry: { attempts: 50, baseMs: 0.1 } })(t, folder);
};

testTransport('s3', s3({ pageKeys: 2 }));
testTransport('s3 with versions, full of faults', faulty);
