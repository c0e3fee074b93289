/**
 * Makes a registry. What writes Prometheus's texts is loaded with the first one: decoder threads, and processes that
 * nobody scrapes, do without.
 */
import type { Side } from './metric.ts';
import type { MetricsRegistry } from './registry.ts';

/** The metrics of one side; those that have no collector yet are there with zero. */
export async function openRegistry(side: Side): Promise<MetricsRegistry> {
  const { MetricsRegistry: Registry } = await import('./registry.ts');
  return new Registry(side);
}
