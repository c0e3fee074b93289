/** The conformance suite over every transport and wrapper. */
import type { TestContext } from 'node:test';
import { serveRegion } from '../../storage-server/index.ts';
import { type OpenTransportOptions, openTransport } from '../transport/open-transport.ts';
import { withFaults } from '../transport/with-faults.ts';
import { seededRandom } from './random.ts';
import { type MakeSource, testTransport } from './transport-conformance.ts';
import { startProxy } from './transport-fixtures.ts';

const file: MakeSource = (_t, folder) => openTransport(`file://${folder}`);

async function serve(t: TestContext, folder: string): Promise<number> {
  const server = await serveRegion({ roots: [folder], listen: { host: '127.0.0.1', port: 0 } });
  t.after(() => server.close());
  return server.address().port;
}

const tcp =
  (options: OpenTransportOptions = {}): MakeSource =>
  async (t, folder) =>
    openTransport(`rdma://127.0.0.1:${await serve(t, folder)}/`, options);

/** Faults of every kind, so many that most large reads meet one. */
const faulty: MakeSource = async (t, folder) => {
  const plan = { seed: seededRandom().below(2 ** 32), rate: 0.2, delayRate: 0.05, delayMs: 3 };
  return tcp({ retry: { attempts: 50, baseMs: 0.1 }, wrap: (source) => withFaults(source, plan) })(t, folder);
};

/** Connections that are cut at random places: half a header, half a payload, between frames. */
const cutting: MakeSource = async (t, folder) => {
  const port = await serve(t, folder);
  const proxy = await startProxy(t, () => port);
  const random = seededRandom();
  let left = 10_000_000;
  proxy.onPiece = (piece) => {
    left -= piece.byteLength;
    if (left > 0) return piece;
    left = random.below(12_000_000);
    return undefined;
  };
  return openTransport(`rdma://127.0.0.1:${proxy.port}/`, { retry: { attempts: 50, baseMs: 0.1 } });
};

testTransport('file', file);
testTransport('tcp', tcp());
testTransport('tcp, checksums', tcp({ checksum: true }));
testTransport(
  'tcp, three queue pairs, odd sizes',
  tcp({ connections: 3, readBytesMax: 123_457, windowBytes: 1_000_000 }),
);
testTransport('tcp behind with-faults', faulty);
testTransport('tcp behind a cutting proxy', cutting);
