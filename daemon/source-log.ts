/** What happens to the reads of a source, as lines of a log at level debug: one for each retry, hedge, renewal and so on. */
import type { TransportEvent } from '../fetcher/index.ts';

/** As a log of pino has it, or that of a mount's thread. */
interface DebugLog {
  debug(fields: Readonly<Record<string, unknown>>, words: string): void;
}

const WORDS: Readonly<Record<TransportEvent['kind'], string>> = {
  retry: 'trying again',
  resume: 'going on behind what has come',
  'retry-denied': 'not tried again: the budget of retries is used up',
  hedge: 'asked for a second time',
  'hedge-ended': 'the second request is over',
  stall: 'no progress',
  'credentials-renewed': 'credentials renewed',
  concurrency: 'other reads may be under way',
  connected: 'connected',
};

/** Writes events; `about` goes in front of each line's fields. */
export function logEvents(log: DebugLog, about: Readonly<Record<string, unknown>> = {}) {
  return ({ kind, ...fields }: TransportEvent): void => log.debug({ ...about, ...fields }, WORDS[kind]);
}
