/**
 * What a configuration of `qanat daemon` may hold. The README's table, `qanat config check` and the validation of a file
 * all come from here. Keys are called as the options of the command line are, without their dashes in front.
 */
import { z } from 'zod';
import { FetchError, PREFETCH_DEPTH_DEFAULT, STALL_MS, TRANSPORTS } from '../../fetcher/index.ts';
import { DEFAULT_LIMITS } from '../../storage-server/index.ts';
import { parseLocation } from '../../vfs/index.ts';
import { formatBytes, formatHostPort, type HostPort } from '../argument.ts';
import { CLIENT_MS_DEFAULT, SCANS_DEFAULT } from '../http/limits.ts';
import { LOG_FORMATS, LOG_LEVELS } from '../log-names.ts';
import type { OptionName } from '../options.ts';
import { defaultDecoders, MEMORY_BYTES_DEFAULT } from '../scan/engine.ts';
import { redact } from '../secrets.ts';
import { SOURCE_OPTION_NAMES } from '../source-options.ts';
import { SOURCE_NAME_CHARACTERS_MAX } from './limits.ts';
import { formatDuration, keyOf, mismatch, type Setting, type SettingValue, setting } from './setting.ts';

/** Where the daemon's scans and its metrics are, beside the server's 7400 and 7480. */
const LISTEN_DEFAULT: HostPort = { host: '127.0.0.1', port: 7491 };
const METRICS_DEFAULT: HostPort = { host: '127.0.0.1', port: 7490 };

const ADDRESS = { expected: 'host:port', show: formatHostPort };
const ADDRESS_OR_NONE = {
  expected: 'host:port or none',
  show: (address: SettingValue<'metrics'>) => (address === 'none' ? address : formatHostPort(address)),
};
const SIZE = { expected: 'a size such as 512MiB', show: formatBytes };
const TIME = { expected: 'a time such as 30s or 500ms', show: formatDuration };
const COUNT = { expected: 'a whole number' };
const SWITCH = { expected: 'true or false' };
const DEPTH = { expected: 'a whole number or auto' };
const TEXT = (expected: string) => ({ expected, show: (text: string) => (text === '' ? '""' : redact(text)) });
const FILE = TEXT('a file');
const GAP = {
  expected: 'a size such as 64KiB, or auto',
  show: (gap: SettingValue<'maxGap'>) => (gap === 'auto' ? gap : formatBytes(gap)),
};

/** The settings, in the order in which they are shown. Those that are not live take a restart. */
export const SETTINGS = {
  listen: setting('listen', LISTEN_DEFAULT, false, ADDRESS),
  metrics: setting('metrics', METRICS_DEFAULT, false, ADDRESS_OR_NONE),
  insecureListen: setting('insecureListen', false, false, SWITCH),
  memory: setting('memory', MEMORY_BYTES_DEFAULT, false, SIZE),
  decoders: setting('decoders', defaultDecoders(), false, COUNT),
  verifyChecksums: setting('verifyChecksums', true, false, SWITCH),
  prefetchDepth: setting('prefetchDepth', PREFETCH_DEPTH_DEFAULT, true, DEPTH),
  maxGap: setting('maxGap', 'auto', true, GAP),
  connections: setting('connections', 1, true, COUNT),
  transport: setting('transport', 'auto', true, { expected: TRANSPORTS.join(', ') }),
  rdmaDevice: setting('rdmaDevice', 'auto', true, TEXT('the name of a device, auto or none')),
  busyPoll: setting('busyPoll', false, true, SWITCH),
  stallTimeout: setting('stallTimeout', STALL_MS, true, TIME),
  wireChecksum: setting('wireChecksum', false, true, SWITCH),
  hedge: setting('hedge', false, true, SWITCH),
  tokenFile: setting('tokenFile', '', true, FILE),
  caFile: setting('caFile', '', true, FILE),
  clientCert: setting('clientCert', '', true, FILE),
  clientKey: setting('clientKey', '', true, FILE),
  endpoint: setting('endpoint', '', true, TEXT('a URL')),
  region: setting('region', '', true, TEXT('a name')),
  pathStyle: setting('pathStyle', 'auto', true, { expected: 'auto, yes or no' }),
  anonymous: setting('anonymous', false, true, SWITCH),
  requesterPays: setting('requesterPays', false, true, SWITCH),
  allowLocations: setting('allowLocations', false, true, SWITCH),
  maxScans: setting('maxScans', SCANS_DEFAULT, true, COUNT),
  clientTimeout: setting('clientTimeout', CLIENT_MS_DEFAULT, true, TIME),
  drainTimeout: setting('drainTimeout', DEFAULT_LIMITS.drainMs, true, TIME),
  logLevel: setting('logLevel', 'info', true, { expected: LOG_LEVELS.join(', ') }),
  logFormat: setting('logFormat', 'auto', false, { expected: LOG_FORMATS.join(', ') }),
} satisfies { readonly [K in OptionName]?: Setting<K> };

export type SettingName = keyof typeof SETTINGS;
export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[];

/** The same ones of a source alone; without them the ones above hold for it. */
const SOURCE_SETTING_NAMES = ['prefetchDepth', 'maxGap', ...SOURCE_OPTION_NAMES] as const;
export type SourceSettingName = (typeof SOURCE_SETTING_NAMES)[number];
export const SOURCE_SETTINGS: readonly SourceSettingName[] = SOURCE_SETTING_NAMES;

export function settingOf(name: SettingName): Setting<SettingName> {
  return SETTINGS[name] as unknown as Setting<SettingName>;
}

/** For the table of the README: what a schema does not say itself. */
export const settingMeta = z.registry<{ readonly name: SettingName }>();

const settingShape = (names: readonly SettingName[]): Record<string, z.ZodType> =>
  Object.fromEntries(
    names.map((name) => [keyOf(name), settingOf(name).schema.optional().register(settingMeta, { name })]),
  );

export const SOURCE_NAME = new RegExp(`^[A-Za-z0-9][A-Za-z0-9._-]{0,${SOURCE_NAME_CHARACTERS_MAX - 1}}$`);
export const SOURCE_NAME_RULE = `letters, digits, ".", "_" and "-", ${SOURCE_NAME_CHARACTERS_MAX} at most`;

const location = z
  .string({ error: ({ input }) => mismatch('a location such as rdma://host:7400/path', input) })
  .superRefine((text, context) => {
    const problem = locationProblem(text);
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
  });

/** What is wrong with a location; undefined when nothing is. */
export function locationProblem(text: string): string | undefined {
  try {
    parseLocation(text);
    return undefined;
  } catch (error) {
    if (error instanceof FetchError) return redact(error.reason);
    throw error;
  }
}

/** `lake: rdma://host` is short for `lake: { location: rdma://host }`. */
const source = z.preprocess(
  (value) => (typeof value === 'string' ? { location: value } : value),
  z.strictObject(
    { location, ...settingShape(SOURCE_SETTINGS) },
    { error: ({ input }) => mismatch('a location, or a map with one', input) },
  ),
);

const sources = z.record(z.string(), source, {
  error: ({ input }) => mismatch('a map of names to locations', input),
});

export const configSchema = z.strictObject(
  { sources: sources.nullable().optional(), ...settingShape(SETTING_NAMES) },
  { error: ({ input }) => mismatch('a map of settings', input) },
);

/** What a valid file says. */
export type FileValues = z.output<typeof configSchema>;

/** What is wrong with one that is not. */
export type SchemaIssue = z.core.$ZodIssue;

export type Settings = { readonly [K in SettingName]: SettingValue<K> };
