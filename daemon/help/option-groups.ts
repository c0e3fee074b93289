/** Under which heading each option stands in help and manual pages, and the order of the headings. */
import type { OptionName } from '../options.ts';

export const GROUP_TITLES = {
  serving: 'What is served, and where',
  limits: 'Limits of a server',
  rows: 'Rows and columns',
  output: 'Output',
  fetching: 'Fetching',
  decoding: 'Decoding and memory',
  connection: 'Connections to servers',
  observing: 'Observing',
  general: 'General',
} as const;

export type GroupName = keyof typeof GROUP_TITLES;

export const GROUP_OF: Readonly<Record<OptionName, GroupName>> = {
  listen: 'serving',
  http: 'serving',
  all: 'serving',
  align: 'serving',
  insecureListen: 'serving',
  maxConnections: 'limits',
  maxOutstanding: 'limits',
  maxRead: 'limits',
  maxBuffered: 'limits',
  sendMemory: 'limits',
  drainTimeout: 'limits',
  stallTimeout: 'connection',
  connections: 'connection',
  wireChecksum: 'connection',
  columns: 'rows',
  limit: 'rows',
  preserveOrder: 'rows',
  batchRows: 'rows',
  rows: 'rows',
  format: 'output',
  output: 'output',
  dictionary: 'output',
  json: 'output',
  prefetchDepth: 'fetching',
  maxGap: 'fetching',
  decoders: 'decoding',
  memory: 'decoding',
  verifyChecksums: 'decoding',
  explain: 'observing',
  stats: 'observing',
  metrics: 'observing',
  debug: 'general',
  man: 'general',
};
