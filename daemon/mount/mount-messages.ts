/**
 * What the main thread and the mount thread say to each other. Everything is plain data; no byte of a file goes this
 * way.
 */
import type { RecordedSample } from '../../metrics/index.ts';
import type { LogLevel } from '../log-names.ts';
import type { SourceAccess } from '../source-options.ts';
import type { MountReport } from './mount-report.ts';
import type { PostedError } from './posted-error.ts';
import type { View } from './view.ts';

/** What a mount is to be; handed to its thread when that starts. */
export interface MountSettings {
  readonly url: string;
  readonly folder: string;
  /** Folder that a local location is relative to. */
  readonly workingFolder: string;
  readonly view: View;
  readonly memoryBytes: number;
  readonly decoders: number;
  readonly verifyChecksums: boolean;
  readonly prefetchDepth: number | 'auto';
  readonly maxGap: number | 'auto';
  /** Takes Parquet files for any others: for comparisons. */
  readonly plain: boolean;
  /** Absent: none. */
  readonly diskCache: { readonly folder: string; readonly bytes: number } | undefined;
  /** Absent: as is usual for this user. */
  readonly allowOther: boolean | undefined;
  /** How the source is reached. */
  readonly access: SourceAccess;
  /** Milliseconds between looks at the source; absent: by its kind. */
  readonly lookMs: number | undefined;
}

/** What is mounted now, and how. */
export interface MountFacts {
  /** The folder's real path. */
  readonly folder: string;
  /** As it was written. */
  readonly source: string;
  readonly view: View;
  readonly files: number;
  /** Bytes of the files as the source has them. */
  readonly bytes: number;
  readonly generation: string;
  /** A dead mount was there and has been cleared away. */
  readonly cleared: boolean;
}

/** How a mount came to its end; `detached` is out of sight while programs still have files of it open. */
export interface MountEnd {
  readonly how: 'unmounted' | 'detached';
  /** Nobody asked us: somebody else unmounted it, or the kernel cut the connection. */
  readonly byOthers: boolean;
  readonly error: PostedError | undefined;
  readonly report: MountReport;
}

export type ToMount =
  | { readonly kind: 'figures'; readonly id: number }
  /** Also while it starts. */
  | { readonly kind: 'unmount'; readonly graceMs: number };

export type FromMount =
  | { readonly kind: 'log'; readonly level: LogLevel; readonly text: string; readonly fields: Record<string, unknown> }
  | { readonly kind: 'ready'; readonly facts: MountFacts }
  /** It did not come to be: nothing is mounted. */
  | { readonly kind: 'failed'; readonly error: PostedError }
  | { readonly kind: 'figures'; readonly id: number; readonly samples: readonly RecordedSample[] }
  | { readonly kind: 'ended'; readonly end: MountEnd };
