/**
 * What a client shows to a server, and what it wants to see of it: a token, authorities, a certificate of its own. Read
 * from files when they are needed, so that what is renewed there is used from the next connection on. No secret is in an
 * error.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { getCACertificates, type SecureContextOptions } from 'node:tls';
import { FetchError } from '../errors.ts';
import { TOKEN_CHARACTERS_MAX } from './limits.ts';
import { asFetchError } from './local-errors.ts';

export interface CredentialOptions {
  /** A bearer token. It is never sent to a server that another redirects to. */
  readonly token?: string | undefined;
  /** File with the token in one line; goes before the token itself. */
  readonly tokenFile?: string | undefined;
  /** File with authorities to accept besides those of Node, PEM. */
  readonly caFile?: string | undefined;
  /** Certificate of this client, and its key, PEM. */
  readonly clientCertFile?: string | undefined;
  readonly clientKeyFile?: string | undefined;
}

/** Throws FetchError OPTION for what is no token, and what is wrong with a file. */
export async function fetchToken({ token, tokenFile }: CredentialOptions): Promise<string | undefined> {
  const text = tokenFile === undefined ? token : (await fetchText(tokenFile)).trim();
  if (text === undefined) return undefined;
  if (/^[\x21-\x7e]+$/.test(text) && text.length <= TOKEN_CHARACTERS_MAX) return text;
  throw new FetchError('OPTION', `${tokenFile ?? 'the token'}: expected a token in one line`);
}

/** For connections under TLS. Throws FetchError OPTION, and what is wrong with a file. */
export async function fetchTlsOptions({
  caFile,
  clientCertFile,
  clientKeyFile,
}: CredentialOptions): Promise<SecureContextOptions> {
  if ((clientCertFile === undefined) !== (clientKeyFile === undefined)) {
    throw new FetchError('OPTION', 'a client certificate takes two files: --client-cert and --client-key');
  }
  const ca = caFile === undefined ? undefined : await fetchText(caFile);
  if (ca !== undefined) checkPem(caFile!, 'certificate authorities', () => new X509Certificate(ca));
  const own = clientCertFile === undefined ? {} : await fetchOwn(clientCertFile, clientKeyFile!);
  return { ...own, ...(ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] }) };
}

async function fetchOwn(certFile: string, keyFile: string): Promise<{ cert: string; key: string }> {
  const cert = await fetchText(certFile);
  const key = await fetchText(keyFile);
  const certificate = checkPem(certFile, 'a certificate', () => new X509Certificate(cert));
  const privateKey = checkPem(keyFile, 'a key without a passphrase', () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new FetchError('OPTION', `${keyFile} is not the key of the certificate in ${certFile}`);
  }
  return { cert, key };
}

function checkPem<T>(path: string, what: string, parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    throw new FetchError('OPTION', `${path}: expected ${what} as PEM`, { cause });
  }
}

async function fetchText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw asFetchError(error, path);
  }
}
