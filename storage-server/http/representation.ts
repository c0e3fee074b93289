/** What is served under one address: bytes of one version, which can be told apart from every other one. */
import { createHash } from 'node:crypto';
import { type DirectoryEntry, isParquetPath, regionAddress } from '../protocol/index.ts';
import type { Region } from '../region.ts';
import { findByPath } from './path-order.ts';

export interface Representation {
  /** Strong, with its quotes. */
  readonly etag: string;
  readonly length: number;
  /** Milliseconds since 1970. */
  readonly modifiedMs: number;
  readonly mediaType: string;
  /** Where in a region this version starts; undefined if the region does not have it. */
  addressIn(region: Region): number | undefined;
}

/** A file of a region. */
export function fileRepresentation({ path, etag, length, modifiedMs }: DirectoryEntry): Representation {
  return {
    etag: quotedEtag(etag),
    length,
    modifiedMs: pastTime(modifiedMs),
    mediaType: isParquetPath(path) ? 'application/vnd.apache.parquet' : 'application/octet-stream',
    addressIn({ directory }) {
      const entry = findByPath(directory.entries, path);
      if (entry === undefined || entry.etag !== etag || entry.length !== length) return undefined;
      return regionAddress(directory, entry, 0, length);
    },
  };
}

/** A region as a whole, as `qanat pack` would write it. */
export function regionRepresentation({ generation, length }: Region, publishedMs: number): Representation {
  const name = Buffer.from(generation).toString('hex');
  return {
    etag: `"${name}"`,
    length,
    modifiedMs: pastTime(publishedMs),
    mediaType: 'application/octet-stream',
    addressIn: (region) => (Buffer.from(region.generation).toString('hex') === name ? 0 : undefined),
  };
}

/** Etags of packed files are whatever their packer wrote; a header takes only some characters. */
function quotedEtag(etag: string): string {
  if (/^[\x21\x23-\x7e]+$/.test(etag)) return `"${etag}"`;
  return `"${createHash('sha256').update(etag).digest('hex').slice(0, 40)}"`;
}

/** A time that a date in a header can be: what clocks and packers say may be none, or lie ahead. */
function pastTime(ms: number): number {
  return Math.min(Math.max(0, Number.isFinite(ms) ? ms : 0), Date.now());
}
