/** The endpoint of a command that reads: there while the command runs, when `--metrics` asks for it. */
import { formatHostPort } from '../argument.ts';
import { startEndpoint } from '../endpoint.ts';
import type { OptionValues } from '../options.ts';
import { ClientMetrics } from '../scan/client-metrics.ts';

/** Runs `work` with the metrics that its sources and engine are to be added to; without any when none are asked for. */
export async function withClientEndpoint<T>(
  { metrics: address }: OptionValues,
  work: (metrics: ClientMetrics | undefined) => Promise<T>,
): Promise<T> {
  if (address === undefined || address === 'none') return work(undefined);
  const endpoint = await startEndpoint({ side: 'client', address, option: '--metrics' });
  try {
    process.stderr.write(`metrics: http://${formatHostPort(endpoint.address())}/metrics\n`);
    return await work(new ClientMetrics(endpoint.registry));
  } finally {
    await endpoint.close();
  }
}
