/** What is served under one address: bytes of one version, which can be told apart from every other one. */
import { createHash } from 'node:crypto';
import { type DirectoryEntry, isParquetPath, regionAddress } from '../protocol/index.ts';
import type { Region } from '../region.ts';
import type { RegionHolder } from '../region-holder.ts';
import { findByPath } from './path-order.ts';

/** What can be told of a version without its bytes. */
export interface Description {
  /** Strong, with its quotes. */
  readonly etag: string;
  readonly length: number;
  /** Milliseconds since 1970. */
  readonly modifiedMs: number;
  readonly mediaType: string;
}

export interface Representation extends Description {
  /** Where this version is to be read now; undefined if it is not there any more, or not for whoever asked. */
  locate(): { readonly region: Region; readonly address: number } | undefined;
}

/** What somebody may see of what is served. */
export interface Sight {
  readonly regions: RegionHolder;
  /** False from when on they may see nothing any more. */
  readonly isGood: boolean;
}

export function describeFile({ path, etag, length, modifiedMs }: DirectoryEntry): Description {
  return {
    etag: quotedEtag(etag),
    length,
    modifiedMs: pastTime(modifiedMs),
    mediaType: isParquetPath(path) ? 'application/vnd.apache.parquet' : 'application/octet-stream',
  };
}

/** A file of what somebody sees. */
export function fileRepresentation(sight: Sight, entry: DirectoryEntry): Representation {
  const { path, etag, length } = entry;
  return {
    ...describeFile(entry),
    locate() {
      if (!sight.isGood) return undefined;
      const region = sight.regions.current;
      const { directory } = region;
      const now = findByPath(directory.entries, path);
      if (now === undefined || now.etag !== etag || now.length !== length) return undefined;
      return { region, address: regionAddress(directory, now, 0, length) };
    },
  };
}

/** All that somebody sees as one region, as `qanat pack` would write it. */
export function regionRepresentation(sight: Sight): Representation {
  const { current, publishedMs } = sight.regions;
  const { generation, length } = current;
  const name = Buffer.from(generation).toString('hex');
  return {
    etag: `"${name}"`,
    length,
    modifiedMs: pastTime(publishedMs),
    mediaType: 'application/octet-stream',
    locate() {
      const region = sight.regions.current;
      const isSame = sight.isGood && Buffer.from(region.generation).toString('hex') === name;
      return isSame ? { region, address: 0 } : undefined;
    },
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
