/** Values of options as people write them. Each parser throws CommandError USAGE that says what to write instead. */
import { CommandError } from './errors.ts';

function bad(reason: string): CommandError {
  return new CommandError('USAGE', reason);
}

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  k: 2 ** 10,
  m: 2 ** 20,
  g: 2 ** 30,
  t: 2 ** 40,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
};

/** A size in bytes: `1048576`, `256MiB`, `1GB`, `1.5GiB`; K, M, G and T alone are binary. */
export function parseBytes(text: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim()) ?? [];
  const scale = unit === undefined ? undefined : UNITS[unit.toLowerCase()];
  if (number === undefined || scale === undefined) {
    throw bad(`${JSON.stringify(text)} is no size: write bytes, or a number with KiB, MiB, GiB, KB, MB or GB`);
  }
  const bytes = Number(number) * scale;
  if (!Number.isSafeInteger(Math.round(bytes))) throw bad(`${JSON.stringify(text)} is too large`);
  return Math.round(bytes);
}

/** A parser for sizes within bounds. */
export function bytesFrom(least: number, most: number): (text: string) => number {
  return (text) => {
    const bytes = parseBytes(text);
    if (bytes >= least && bytes <= most) return bytes;
    throw bad(`${JSON.stringify(text)} is out of bounds: at least ${formatBytes(least)}, at most ${formatBytes(most)}`);
  };
}

/** A parser for whole numbers within bounds. */
export function wholeFrom(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text.trim()) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    const upTo = most === Number.MAX_SAFE_INTEGER ? `${least} or more` : `from ${least} to ${most}`;
    throw bad(`${JSON.stringify(text)}: expected a whole number, ${upTo}`);
  };
}

/** `auto`, or what the parser takes. */
export function orAuto<T>(parse: (text: string) => T): (text: string) => T | 'auto' {
  return (text) => (text.trim().toLowerCase() === 'auto' ? 'auto' : parse(text));
}

export function oneOf<T extends string>(...names: readonly T[]): (text: string) => T {
  return (text) => {
    const name = names.find((one) => one === text.trim().toLowerCase());
    if (name === undefined) throw bad(`${JSON.stringify(text)}: expected one of ${names.join(', ')}`);
    return name;
  };
}

/** The name of an RDMA device, as the kernel allows it; `auto` and `none` are words of ours. */
export function parseDeviceName(text: string): string {
  const name = text.trim();
  if (/^[A-Za-z0-9_.-]{1,63}$/.test(name)) return name;
  throw bad(`${JSON.stringify(text)}: expected the name of an RDMA device, auto or none`);
}

/** A time in milliseconds: `30s`, `500ms`, `2m`; a number alone is seconds. */
export function parseDuration(text: string): number {
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?)\s*(ms|s|m|)$/i.exec(text.trim()) ?? [];
  const scale = { ms: 1, s: 1000, m: 60_000, '': 1000 }[unit.toLowerCase()];
  const milliseconds = Math.round(Number(number) * (scale ?? Number.NaN));
  if (milliseconds >= 1 && milliseconds <= 86_400_000) return milliseconds;
  throw bad(`${JSON.stringify(text)}: expected a time such as 30s, 500ms or 2m`);
}

/** A switch in an environment variable. */
export function parseSwitch(text: string): boolean {
  const word = text.trim().toLowerCase();
  if (['1', 'true', 'yes', 'on'].includes(word)) return true;
  if (['0', 'false', 'no', 'off'].includes(word)) return false;
  throw bad(`${JSON.stringify(text)}: expected true or false`);
}

/**
 * Names separated by commas, as a line of CSV: a name that holds a comma stands in double quotes. Spaces around a name
 * are not part of it unless they stand in the quotes.
 */
export function parseNames(text: string): string[] {
  const names: string[] = [];
  for (let at = 0; at <= text.length; at++) {
    while (text[at] === ' ') at++;
    if (text[at] !== '"') {
      const comma = text.indexOf(',', at);
      const end = comma < 0 ? text.length : comma;
      names.push(text.slice(at, end).trim());
      at = end;
      continue;
    }
    const [quoted, name] = /^"((?:[^"]|"")*)" *(?=,|$)/s.exec(text.slice(at)) ?? [];
    if (quoted === undefined) throw bad(`${text}: a name that starts with a double quote must end with one`);
    names.push(name!.replaceAll('""', '"'));
    at += quoted.length;
  }
  if (names.includes('')) throw bad(`${JSON.stringify(text)} holds an empty name`);
  return names;
}

export interface NamedLocation {
  readonly name: string;
  readonly location: string;
}

/** `lake=rdma://host:7400/path`; several have spaces between them. */
export function parseNamedLocations(text: string): NamedLocation[] {
  return text
    .trim()
    .split(/\s+(?=[\w.-]+=)/)
    .map((one) => {
      const [, name, location] = /^([\w.-]+)=(.+)$/s.exec(one) ?? [];
      if (name === undefined || location === undefined) {
        throw bad(`${JSON.stringify(one)}: expected name=location, such as lake=rdma://host:7400/path`);
      }
      return { name, location };
    });
}

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** `127.0.0.1:7400`, `[::1]:7400`, `host:0`. */
export function parseHostPort(text: string): HostPort {
  const [, v6, name, digits] = /^(?:\[([0-9a-f:.]+)\]|([^:[\]\s/]+)):(\d{1,9})$/i.exec(text.trim()) ?? [];
  const host = v6 ?? name;
  if (host === undefined) {
    throw bad(`${JSON.stringify(text)}: expected host:port, such as 127.0.0.1:7400 or [::1]:0`);
  }
  if (Number(digits) > 65535) {
    throw bad(`${JSON.stringify(text)}: ports are 1 to 65535, and 0 takes a free one`);
  }
  return { host, port: Number(digits) };
}

/** The name of a bucket, as clients take one. */
export function parseBucketName(text: string): string {
  if (/^(?!.*(?:\.\.|\.-|-\.))[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(text)) return text;
  throw bad(`${JSON.stringify(text)}: a bucket has 3 to 63 small letters, digits, dots and hyphens`);
}

/** A name of the domain name system. */
export function parseDomain(text: string): string {
  if (/^[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*$/i.test(text) && text.length < 254) return text.toLowerCase();
  throw bad(`${JSON.stringify(text)}: expected a domain, such as s3.example.com`);
}

/** `none`, or what the parser takes. */
export function orNone<T>(parse: (text: string) => T): (text: string) => T | 'none' {
  return (text) => (text.trim().toLowerCase() === 'none' ? 'none' : parse(text));
}

export function formatHostPort({ host, port }: HostPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** `1.5 GiB`, for people. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  for (const unit of ['B', 'KiB', 'MiB', 'GiB', 'TiB']) {
    if (value < 1024 || unit === 'TiB')
      return `${unit === 'B' ? Math.round(value) : String(Number(value.toFixed(value < 10 ? 2 : 1)))} ${unit}`;
    value /= 1024;
  }
  return `${bytes} B`;
}

/** `1,234,567`. */
export function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}

/** `1 file`, `2,000 files`. */
export function formatCounted(count: number, what: string): string {
  return `${formatCount(count)} ${what}${count === 1 ? '' : 's'}`;
}

/** `1.23 s`, `45 ms`. */
export function formatMs(milliseconds: number): string {
  if (milliseconds >= 10_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  return milliseconds >= 1000
    ? `${(milliseconds / 1000).toFixed(2)} s`
    : `${milliseconds.toFixed(milliseconds < 10 ? 1 : 0)} ms`;
}
