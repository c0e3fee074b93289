/**
 * The HTTP endpoint of a process of ours: a registry with the process's own figures behind `/metrics`, `/healthz` and
 * `/readyz`. Whoever starts it adds collectors for what the process does.
 */
import {
  type EndpointOptions,
  type MetricsEndpoint,
  MetricsError,
  type MetricsRegistry,
  openRegistry,
  processCollector,
  startMetricsEndpoint,
} from '../metrics/index.ts';
import packageJson from '../package.json' with { type: 'json' };
import type { HostPort } from './argument.ts';

export interface ProcessEndpoint extends MetricsEndpoint {
  readonly registry: MetricsRegistry;
}

export interface ProcessEndpointOptions {
  readonly side: 'server' | 'client';
  readonly address: HostPort;
  /** How the address was asked for, for the error: `--http`. */
  readonly option: string;
  /** Why `/readyz` says no now, if it does. */
  readonly notReady?: () => string | undefined;
  /** Answers requests for what is not the endpoint's own; false for those that it does not know either. */
  readonly others?: EndpointOptions['others'];
  readonly access?: Pick<EndpointOptions, 'admits' | 'hostNames' | 'secure'>;
  readonly limits?: EndpointOptions['limits'];
}

/** Starts the endpoint. Throws MetricsError LISTEN, which says what to do. */
export async function startEndpoint({
  side,
  address,
  option,
  notReady,
  others,
  access = {},
  limits,
}: ProcessEndpointOptions): Promise<ProcessEndpoint> {
  const registry = await openRegistry(side);
  registry.addCollector(processCollector(packageJson.version));
  try {
    const started = await startMetricsEndpoint({
      registry,
      ...address,
      ...access,
      ...(notReady === undefined ? {} : { notReady }),
      ...(others === undefined ? {} : { others }),
      ...(limits === undefined ? {} : { limits }),
    });
    return { ...started, registry };
  } catch (error) {
    if (!(error instanceof MetricsError) || error.code !== 'LISTEN') throw error;
    const hint = `choose another with ${option}, port 0 takes a free one, ${option} none does without`;
    throw new MetricsError('LISTEN', `HTTP on ${error.reason}: ${hint}`, { cause: error });
  }
}
