/** What the files of a region are made of; a region lays them out, and where they lie is read by others. */
import type { DirectoryEntry, VersionStat } from './protocol/index.ts';

/** A file of this machine as it was when the region was made. */
export interface StoredFile {
  /** Links resolved. */
  readonly localPath: string;
  readonly version: VersionStat;
}

/** A root that files are served from. */
export interface ServedRoot {
  /** What it is known by. */
  readonly name: string;
  /** What the paths of its files begin with. */
  readonly prefix: string;
}

/** A file of the region: consecutive bytes of a stored one, which several may share. */
export interface ServedFile extends Omit<DirectoryEntry, 'offset'> {
  readonly store: StoredFile;
  readonly root: ServedRoot;
  /** Where in the stored file it starts. */
  readonly start: number;
}
