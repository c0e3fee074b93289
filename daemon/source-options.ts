/** How sources are reached: the same options of commands, mounts and the daemon, as the fetcher takes them. */
import type { OpenTransportOptions } from '../fetcher/index.ts';
import type { OptionValues } from './options.ts';

/** Those of OPTIONS that say how a source is reached. */
export const SOURCE_OPTION_NAMES = [
  'connections',
  'transport',
  'rdmaDevice',
  'busyPoll',
  'stallTimeout',
  'wireChecksum',
  'hedge',
  'tokenFile',
  'caFile',
  'clientCert',
  'clientKey',
  'endpoint',
  'region',
  'pathStyle',
  'anonymous',
  'requesterPays',
] as const;
export type SourceOptionName = (typeof SOURCE_OPTION_NAMES)[number];

/** A token itself; never an option, which everybody on the machine could see. */
const TOKEN_VARIABLE = 'QANAT_TOKEN';

/** Their values; a text that is empty is none. */
export type SourceOptionValues = { readonly [K in SourceOptionName]?: OptionValues[K] | undefined };

export type SourceAccess = Pick<
  OpenTransportOptions,
  | 'connections'
  | 'rdma'
  | 'stallMs'
  | 'checksum'
  | 'hedge'
  | 'token'
  | 'tokenFile'
  | 'caFile'
  | 'clientCertFile'
  | 'clientKeyFile'
  | 's3'
>;

/** What `openSource` is given; `pathOf` says what a path of a file is relative to. */
export function sourceAccess(values: SourceOptionValues, pathOf: (path: string) => string = String): SourceAccess {
  const { connections, stallTimeout, wireChecksum, hedge, tokenFile, caFile, clientCert, clientKey } = values;
  const { transport, rdmaDevice, busyPoll } = values;
  const token = process.env[TOKEN_VARIABLE];
  const { endpoint, region, pathStyle, anonymous, requesterPays } = values;
  return {
    ...(connections === undefined ? {} : { connections }),
    rdma: {
      transport: rdmaDevice === 'none' && transport !== 'verbs' ? 'tcp' : transport,
      device: namedDevice(rdmaDevice),
      busyPoll,
    },
    ...(stallTimeout === undefined ? {} : { stallMs: stallTimeout }),
    ...(wireChecksum === undefined ? {} : { checksum: wireChecksum }),
    ...(hedge === undefined ? {} : { hedge }),
    ...(isGiven(token) ? { token } : {}),
    ...(isGiven(tokenFile) ? { tokenFile: pathOf(tokenFile) } : {}),
    ...(isGiven(caFile) ? { caFile: pathOf(caFile) } : {}),
    ...(isGiven(clientCert) ? { clientCertFile: pathOf(clientCert) } : {}),
    ...(isGiven(clientKey) ? { clientKeyFile: pathOf(clientKey) } : {}),
    s3: {
      ...(isGiven(endpoint) ? { endpoint } : {}),
      ...(isGiven(region) ? { region } : {}),
      ...(pathStyle === undefined || pathStyle === 'auto' ? {} : { pathStyle: pathStyle === 'yes' }),
      ...(anonymous === undefined ? {} : { anonymous }),
      ...(requesterPays === undefined ? {} : { requesterPays }),
    },
  };
}

/** The same without what only those may see that it was given for. */
export function withoutCredentials({
  token: _t,
  tokenFile: _f,
  clientCertFile: _c,
  clientKeyFile: _k,
  ...access
}: SourceAccess): SourceAccess {
  return access;
}

function isGiven(text: string | undefined): text is string {
  return text !== undefined && text !== '';
}

/** The device that `--rdma-device` names, if it names one. */
export function namedDevice(rdmaDevice: string | undefined): string | undefined {
  return rdmaDevice === 'auto' || rdmaDevice === 'none' ? undefined : rdmaDevice;
}
