/** The conformance suite over HTTP: a server that does everything right, and one that is full of faults and knows no conditions. */
import { readdirSync } from 'node:fs';
import { sortedByPath } from '../../storage-server/protocol/index.ts';
import { type OpenTransportOptions, openTransport } from '../transport/open-transport.ts';
import type { Transport } from '../transport/transport.ts';
import { seededRandom } from './random.ts';
import { type MakeSource, testTransport } from './transport-conformance.ts';
import { type Fault, startWebServer, type WebServerOptions } from './web-server.ts';

/** Plain HTTP has no listings: the test knows the paths. */
function withListing(inner: Transport, folder: string): Transport {
  return {
    ...inner,
    async list(prefix) {
      const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
      const paths = entries.map(({ parentPath, name }) => `${parentPath}/${name}`.slice(folder.length + 1));
      const named = paths.filter((path) => path.startsWith(prefix));
      const found = await Promise.all((named.length === 0 ? ['none'] : named).map((path) => inner.list(path)));
      return sortedByPath(found.flat());
    },
  };
}

const http =
  (server: WebServerOptions = {}, options: OpenTransportOptions = {}): MakeSource =>
  async (t, folder) => {
    const { origin } = await startWebServer(t, folder, server);
    const opened = await openTransport(`${origin}/`, options);
    return { ...opened, transport: withListing(opened.transport, folder) };
  };

/** Faults that pass when they are tried again. */
const PASSING: readonly Fault[] = [
  'reset',
  'truncate',
  'truncate-chunked',
  'busy',
  'wrong-range',
  'short',
  'long',
  'no-range-header',
  'parts',
];

const faulty: MakeSource = (t, folder) => {
  const random = seededRandom();
  const fault = (): Fault | undefined => (random.below(5) === 0 ? PASSING[random.below(PASSING.length)] : undefined);
  return http({ fault, conditions: false }, { retry: { attempts: 50, baseMs: 0.1 } })(t, folder);
};

testTransport('http', http());
testTransport('http full of faults', faulty);
