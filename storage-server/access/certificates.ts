/**
 * Certificate, key and authorities of a server: read from files, checked, used by its listeners, and read again when it
 * is told to or when the files change. What can't be used is told, and what there was goes on being used: a renewal that
 * goes wrong ends nothing. Connections that are open keep what they were made with. TLS 1.3 and nothing before it.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { stat } from 'node:fs/promises';
import type { ServerOptions } from 'node:http';
import { createServer, type Server as HttpServer } from 'node:https';
import { createSecureContext, type Server, type TlsOptions } from 'node:tls';
import { ServeError } from '../errors.ts';
import type { DoorName } from './access-counters.ts';
import { EXPIRY_WARNING_MS } from './limits.ts';
import { readSecretFile } from './secret-file.ts';

export interface TlsFiles {
  /** The certificate and those that lead to its authority, PEM. */
  readonly certFile: string;
  readonly keyFile: string;
  /** Authorities of the certificates that clients have to show; clients need none without. */
  readonly clientCaFile?: string | undefined;
}

type Warn = (event: string, detail: string) => void;

interface Material {
  readonly cert: string;
  readonly key: string;
  readonly ca?: string;
  readonly endMs: number;
  /** SHA-256 of the certificate, for logs. */
  readonly fingerprint: string;
}

export class Certificates {
  /** Handshakes that failed, by listener. */
  readonly failures: Record<DoorName, number> = { queue_pair: 0, http: 0, s3: 0 };
  readonly #files: TlsFiles;
  readonly #log: Warn;
  readonly #servers = new Set<Server>();
  #material: Material;
  #seen: string;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<unknown> = Promise.resolve();

  private constructor(files: TlsFiles, log: Warn, material: Material, seen: string) {
    this.#files = files;
    this.#log = log;
    this.#material = material;
    this.#seen = seen;
    this.#tellEnd();
  }

  /** Reads them. Throws ServeError TLS. */
  static async load(files: TlsFiles, log: Warn): Promise<Certificates> {
    const seen = await lookAt(files);
    return new Certificates(files, log, await readMaterial(files, log), seen);
  }

  /** Whether clients have to show a certificate. */
  get isAskingClients(): boolean {
    return this.#material.ca !== undefined;
  }

  /** When the certificate ends, milliseconds since 1970. */
  get endMs(): number {
    return this.#material.endMs;
  }

  /** What a listener is made with. */
  get options(): TlsOptions {
    return {
      ...contextOf(this.#material),
      requestCert: this.isAskingClients,
      rejectUnauthorized: this.isAskingClients,
    };
  }

  /** A listener for HTTP. */
  createHttpServer(http: ServerOptions, handshakeMs: number, door: DoorName = 'http'): HttpServer {
    const server = createServer({ ...http, ...this.options, handshakeTimeout: handshakeMs });
    server.on('tlsClientError', () => this.failures[door]++);
    this.attach(server);
    return server;
  }

  /** Gives a listener what is read later, until it is closed. */
  attach(server: Server): void {
    this.#servers.add(server);
    server.once('close', () => this.#servers.delete(server));
  }

  /** Reads the files again; what can't be used is logged and changes nothing. */
  reload(): Promise<void> {
    this.#running = this.#running.then(() => this.#reload());
    return this.#running as Promise<void>;
  }

  /** Reads them again whenever they have changed, looking every `intervalMs`. */
  watch(intervalMs: number): void {
    this.#timer = setInterval(() => {
      this.#running = this.#running.then(async () => {
        const seen = await lookAt(this.#files);
        if (seen !== this.#seen) await this.#reload();
      });
    }, intervalMs);
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #reload(): Promise<void> {
    this.#seen = await lookAt(this.#files);
    try {
      const material = await readMaterial(this.#files, this.#log);
      const { cert, key, ca } = this.#material;
      if (material.cert === cert && material.key === key && material.ca === ca) return;
      for (const server of this.#servers) server.setSecureContext(contextOf(material));
      this.#material = material;
      this.#log('certificate', `new connections get the certificate ${material.fingerprint}`);
      this.#tellEnd();
    } catch (error) {
      const reason = error instanceof ServeError ? error.reason : String(error);
      this.#log('certificate not taken over', `${reason}; the one from before is still used`);
    }
  }

  #tellEnd(): void {
    const { endMs } = this.#material;
    if (endMs - Date.now() > EXPIRY_WARNING_MS) return;
    this.#log('warning', `the certificate of this server ends ${new Date(endMs).toISOString()}`);
  }
}

function contextOf({ cert, key, ca }: Material): TlsOptions {
  return { cert, key, minVersion: 'TLSv1.3', ...(ca === undefined ? {} : { ca }) };
}

/** Tells apart what was written to the files, and links that lead elsewhere, without reading them. */
async function lookAt({ certFile, keyFile, clientCaFile }: TlsFiles): Promise<string> {
  const looks = [certFile, keyFile, clientCaFile].map(async (path) => {
    if (path === undefined) return '';
    const found = await stat(path, { bigint: true }).catch(() => undefined);
    return found === undefined ? 'none' : [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join('-');
  });
  return (await Promise.all(looks)).join(' ');
}

async function readMaterial({ certFile, keyFile, clientCaFile }: TlsFiles, log: Warn): Promise<Material> {
  const cert = await readText(certFile, 'the certificate');
  const key = await readText(keyFile, 'the key of the certificate');
  const ca = clientCaFile === undefined ? undefined : await readText(clientCaFile, 'the authorities of clients');
  const certificate = parse(certFile, () => new X509Certificate(cert.text));
  const privateKey = parse(keyFile, () => createPrivateKey(key.text));
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new ServeError('TLS', `the key in ${keyFile} is not that of the certificate in ${certFile}`);
  }
  const endMs = certificate.validToDate.getTime();
  if (endMs <= Date.now()) throw new ServeError('TLS', `the certificate in ${certFile} ended ${certificate.validTo}`);
  if (certificate.validFromDate.getTime() > Date.now()) {
    throw new ServeError('TLS', `the certificate in ${certFile} begins ${certificate.validFrom}: is the clock right?`);
  }
  if (ca !== undefined) parse(clientCaFile!, () => new X509Certificate(ca.text));
  const fingerprint = certificate.fingerprint256.replaceAll(':', '').toLowerCase();
  const material = { cert: cert.text, key: key.text, endMs, fingerprint, ...(ca === undefined ? {} : { ca: ca.text }) };
  parse(certFile, () => createSecureContext(contextOf(material)));
  if (key.exposure !== undefined) log('warning', key.exposure);
  return material;
}

async function readText(path: string, what: string): Promise<{ text: string; exposure: string | undefined }> {
  try {
    return await readSecretFile(path);
  } catch (cause) {
    throw new ServeError('TLS', `${what} can't be read: ${(cause as Error).message}`, { cause });
  }
}

/** Errors of OpenSSL name no content, and say what is wrong in its own words. */
function parse<T>(path: string, act: () => T): T {
  try {
    return act();
  } catch (cause) {
    throw new ServeError(
      'TLS',
      `${path} can't be used (PEM is expected, a key without a passphrase): ${(cause as Error).message}`,
      {
        cause,
      },
    );
  }
}
