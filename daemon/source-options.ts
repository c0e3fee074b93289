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
  'endpoint',
  'region',
  'pathStyle',
  'anonymous',
  'requesterPays',
] as const;
export type SourceOptionName = (typeof SOURCE_OPTION_NAMES)[number];

/** Their values; a text that is empty is none. */
export type SourceOptionValues = { readonly [K in SourceOptionName]?: OptionValues[K] | undefined };

export type SourceAccess = Pick<
  OpenTransportOptions,
  'connections' | 'rdma' | 'stallMs' | 'checksum' | 'hedge' | 'tokenFile' | 'caFile' | 's3'
>;

/** What `openSource` is given; `pathOf` says what a path of a file is relative to. */
export function sourceAccess(values: SourceOptionValues, pathOf: (path: string) => string = String): SourceAccess {
  const { connections, stallTimeout, wireChecksum, hedge, tokenFile, caFile } = values;
  const { transport, rdmaDevice, busyPoll } = values;
  const { endpoint, region, pathStyle, anonymous, requesterPays } = values;
  return {
    ...(connections === undefined ? {} : { connections }),
    rdma: {
      transport: rdmaDevice === 'none' && transport !== 'verbs' ? 'tcp' : transport,
      ...(rdmaDevice === undefined || rdmaDevice === 'auto' || rdmaDevice === 'none' ? {} : { device: rdmaDevice }),
      ...(busyPoll === undefined ? {} : { busyPoll }),
    },
    ...(stallTimeout === undefined ? {} : { stallMs: stallTimeout }),
    ...(wireChecksum === undefined ? {} : { checksum: wireChecksum }),
    ...(hedge === undefined ? {} : { hedge }),
    ...(isGiven(tokenFile) ? { tokenFile: pathOf(tokenFile) } : {}),
    ...(isGiven(caFile) ? { caFile: pathOf(caFile) } : {}),
    s3: {
      ...(isGiven(endpoint) ? { endpoint } : {}),
      ...(isGiven(region) ? { region } : {}),
      ...(pathStyle === undefined || pathStyle === 'auto' ? {} : { pathStyle: pathStyle === 'yes' }),
      ...(anonymous === undefined ? {} : { anonymous }),
      ...(requesterPays === undefined ? {} : { requesterPays }),
    },
  };
}

function isGiven(text: string | undefined): text is string {
  return text !== undefined && text !== '';
}
