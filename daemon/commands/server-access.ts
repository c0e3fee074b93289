/**
 * Who gets at a server of ours, from the options: what is checked before anything listens. An address that other machines
 * reach takes authentication, or to be told that none is wanted.
 */
import { Certificates } from '../../storage-server/index.ts';
import { formatHostPort, type HostPort } from '../argument.ts';
import { CommandError } from '../errors.ts';
import { isExposed } from '../exposure.ts';
import type { Log } from '../log.ts';
import type { OptionValues } from '../options.ts';

export interface ServedAddresses {
  readonly listen: HostPort;
  readonly http: HostPort | 'none';
}

/** Checks that the options make sense together, and warns of what they open. Throws CommandError USAGE. */
export function checkAccess(options: OptionValues, { listen, http }: ServedAddresses, log: Log): void {
  const { tlsCert, tlsKey, tlsClientCa, tokens, s3, s3Keys, s3Bucket, s3Domain, insecureListen = false } = options;
  if ((tlsCert === undefined) !== (tlsKey === undefined)) {
    throw new CommandError('USAGE', '--tls-cert and --tls-key go together: a certificate and its key');
  }
  if (tlsClientCa !== undefined && tlsCert === undefined) {
    throw new CommandError('USAGE', '--tls-client-ca takes TLS: --tls-cert and --tls-key');
  }
  if (s3 === undefined && (s3Keys !== undefined || s3Bucket !== undefined || s3Domain !== undefined)) {
    throw new CommandError('USAGE', '--s3-keys, --s3-bucket and --s3-domain are about --s3, which is not given');
  }
  const isSecure = tlsCert !== undefined;
  const door = { isSecure, isAllowed: insecureListen, log };
  const isGuarded = tokens !== undefined || tlsClientCa !== undefined;
  checkDoor(listen, { ...door, isGuarded, remedy: '--tokens or --tls-client-ca' });
  if (http !== 'none') checkDoor(http, { ...door, isGuarded, remedy: '--tokens or --tls-client-ca' });
  if (s3 === undefined) return;
  const isSigned = s3Keys !== undefined;
  checkDoor(s3, { ...door, isGuarded: isSigned || tlsClientCa !== undefined, remedy: '--s3-keys or --tls-client-ca' });
  if (tokens === undefined || isSigned) return;
  const open = 'tokens are not asked for over S3, where everybody could read every file';
  if (!insecureListen)
    throw new CommandError('USAGE', `${open}: give --s3-keys too, or --insecure-listen if that is meant`);
  log.warn(open);
}

interface DoorCheck {
  readonly isGuarded: boolean;
  readonly isSecure: boolean;
  readonly isAllowed: boolean;
  /** What would guard it. */
  readonly remedy: string;
  readonly log: Log;
}

function checkDoor(address: HostPort, { isGuarded, isSecure, isAllowed, remedy, log }: DoorCheck): void {
  if (!isExposed(address)) return;
  const name = formatHostPort(address);
  if (isGuarded) {
    if (!isSecure)
      log.warn(`${name} can be reached by other machines, and what goes over it is not encrypted: --tls-cert`);
    return;
  }
  if (!isAllowed) {
    throw new CommandError(
      'USAGE',
      `${name} can be reached by other machines, and whoever can connect could read every file served: ` +
        `ask for ${remedy}, or add --insecure-listen if the network is trusted`,
    );
  }
  log.warn(`${name} can be reached by other machines, and whoever can connect can read every file served`);
}

/** The certificates of a server, if it speaks TLS. Throws ServeError TLS. */
export async function loadCertificates(
  { tlsCert, tlsKey, tlsClientCa }: OptionValues,
  log: (event: string, peer: string, detail: string) => void,
): Promise<Certificates | undefined> {
  if (tlsCert === undefined || tlsKey === undefined) return undefined;
  const files = { certFile: tlsCert, keyFile: tlsKey, clientCaFile: tlsClientCa };
  return Certificates.load(files, (event, detail) => log(event, '', detail));
}
