/** Where a region comes from: looked at when the server starts and each time it is to publish. */
import { STORES_READING_MAX } from './limits.ts';
import { OpenFiles } from './open-files.ts';
import type { KnownPacks } from './packed-root.ts';
import { PinnedFiles } from './pinned-files.ts';
import { ALIGN_BYTES_MIN, sameVersion } from './protocol/index.ts';
import { makeRegion, type Region } from './region.ts';
import { type OnPlace, type Skipped, scanRoots } from './scan-roots.ts';
import type { ServedFile } from './served-file.ts';

export interface LoadedRegion {
  /** The previous region itself if nothing has changed. */
  readonly region: Region;
  readonly skipped: readonly Skipped[];
}

export interface RegionSource {
  /** What is there now. Throws ServeError; `previous` stays as it is. */
  load(previous: Region | undefined, onPlace: OnPlace): Promise<LoadedRegion>;
}

/** How files are kept in memory instead of being read when they are asked for. */
export interface Pinning {
  /** Bytes of memory at most; files that do not fit are not served at all. */
  readonly budgetBytes: number;
  /** Bytes that are in memory, and that will be. */
  readonly onProgress?: (bytes: number, bytesTotal: number) => void;
  /** Gives up. */
  readonly signal?: AbortSignal;
}

/** The files below some roots. Those that have not changed are the same objects in the next region. */
export function rootsSource(
  roots: readonly string[],
  { all = false, alignBytes = ALIGN_BYTES_MIN, pin }: { all?: boolean; alignBytes?: number; pin?: Pinning },
): RegionSource {
  const packs: KnownPacks = new Map();
  return {
    async load(previous, onPlace) {
      const { files: found, skipped } = await scanRoots(roots, { all, onPlace, packs });
      const known = new Map<string, ServedFile>();
      for (const file of previous?.files ?? []) known.set(file.path, file);
      let kept = 0;
      const files = found.map((file) => {
        const old = known.get(file.path);
        const same =
          old?.store.localPath === file.store.localPath && sameVersion(old.store.version, file.store.version);
        if (same) kept++;
        return same ? old : file;
      });
      if (previous !== undefined && kept === files.length && kept === known.size) return { region: previous, skipped };
      const pinned = pin === undefined ? undefined : await loadPinned(files, pin, previous);
      return { region: makeRegion(files, alignBytes, pinned), skipped };
    },
  };
}

async function loadPinned(files: readonly ServedFile[], pin: Pinning, previous: Region | undefined) {
  const openFiles = new OpenFiles(STORES_READING_MAX);
  try {
    return await PinnedFiles.load(files, { ...pin, openFiles, previous: previous?.pinned });
  } finally {
    openFiles.close();
  }
}
