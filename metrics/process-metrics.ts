/** What the process itself uses, from the operating system and Node.js, with the names that dashboards expect. */
import { readdirSync, readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { METRICS } from './definitions.ts';
import type { Collector } from './registry.ts';

/** A collector of memory, processor time, descriptors and the event loop of this process. */
export function processCollector(version: string): Collector {
  const started = Date.now() / 1000 - process.uptime();
  const descriptors = descriptorsMax();
  return (samples) => {
    const { user, system } = process.cpuUsage();
    const { rss, heapUsed, external } = process.memoryUsage();
    const { active, idle } = performance.eventLoopUtilization();
    samples.add(METRICS.buildInfo, 1, { version, node: process.versions.node });
    samples.add(METRICS.processCpu, (user + system) / 1e6);
    samples.add(METRICS.processStart, started);
    samples.add(METRICS.processResident, rss);
    samples.add(METRICS.processOpenFds, openDescriptors());
    samples.add(METRICS.processMaxFds, descriptors);
    samples.add(METRICS.heapUsed, heapUsed);
    samples.add(METRICS.external, external);
    samples.add(METRICS.loopSeconds, active / 1000, { state: 'active' });
    samples.add(METRICS.loopSeconds, idle / 1000, { state: 'idle' });
  };
}

/** Not a number where there is no /proc: then the metric stays zero. */
function openDescriptors(): number {
  try {
    return readdirSync('/proc/self/fd').length - 1; // without the one that reads them
  } catch {
    return Number.NaN;
  }
}

function descriptorsMax(): number {
  try {
    return Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]);
  } catch {
    return Number.NaN;
  }
}
