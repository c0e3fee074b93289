/**
 * Certificates for tests, made when they are needed and of nobody's trust: an authority, and what it signs, as PEM. Just
 * enough DER to say what a test needs: names, validity, purpose.
 */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIP } from 'node:net';

export interface MadeCertificate {
  readonly cert: string;
  readonly key: string;
  readonly privateKey: KeyObject;
  readonly name: string;
}

export interface CertificateOptions {
  /** Who signs; itself without. */
  readonly issuer?: MadeCertificate;
  readonly isAuthority?: boolean;
  /** Host names and addresses. */
  readonly names?: readonly string[];
  readonly fromMs?: number;
  readonly toMs?: number;
}

const DAY_MS = 24 * 3600 * 1000;

/** Makes a certificate with a key of its own. */
export function makeCertificate(name: string, options: CertificateOptions = {}): MadeCertificate {
  const { issuer, isAuthority = false, names = [] } = options;
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const fromMs = options.fromMs ?? Date.now() - DAY_MS;
  const toMs = options.toMs ?? Date.now() + 365 * DAY_MS;
  const extensions = [
    extension('55 1d 13', true, sequence(isAuthority ? der(0x01, Buffer.from([0xff])) : Buffer.alloc(0))),
    extension('55 1d 0f', true, der(0x03, isAuthority ? Buffer.from([1, 0x06]) : Buffer.from([7, 0x80]))),
    ...(names.length === 0 ? [] : [extension('55 1d 11', false, sequence(...names.map(alternativeName)))]),
  ];
  const serial = randomBytes(8);
  serial[0] = (serial[0]! & 0x7f) | 0x40;
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, serial),
    ECDSA_SHA256,
    nameOf(issuer?.name ?? name),
    sequence(time(fromMs), time(toMs)),
    nameOf(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensions)),
  );
  const signature = sign('sha256', body, issuer?.privateKey ?? privateKey);
  const whole = sequence(body, ECDSA_SHA256, der(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const base64 = whole.toString('base64').replace(/(.{64})/g, '$1\n');
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${base64.trimEnd()}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    privateKey,
    name,
  };
}

function der(tag: number, content: Buffer): Buffer {
  const length = content.byteLength;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function objectId(hex: string): Buffer {
  return der(0x06, Buffer.from(hex.replaceAll(' ', ''), 'hex'));
}

const ECDSA_SHA256 = sequence(objectId('2a 86 48 ce 3d 04 03 02'));

function nameOf(commonName: string): Buffer {
  return sequence(der(0x31, sequence(objectId('55 04 03'), der(0x0c, Buffer.from(commonName)))));
}

function extension(id: string, isCritical: boolean, content: Buffer): Buffer {
  const critical = isCritical ? [der(0x01, Buffer.from([0xff]))] : [];
  return sequence(objectId(id), ...critical, der(0x04, content));
}

function alternativeName(name: string): Buffer {
  if (isIP(name) === 4) return der(0x87, Buffer.from(name.split('.').map(Number)));
  return der(0x82, Buffer.from(name));
}

/** Years up to 2049 have two digits. */
function time(ms: number): Buffer {
  const text = new Date(ms).toISOString().replace(/[-:T]/g, '').replace(/\..*$/, 'Z');
  return text < '2050' ? der(0x17, Buffer.from(text.slice(2))) : der(0x18, Buffer.from(text));
}
