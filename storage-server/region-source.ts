/** Where a region comes from: looked at when the server starts and each time it is to publish. */
import { ServeError } from './errors.ts';
import { ALIGN_BYTES_MIN, ProtocolError, sameVersion } from './protocol/index.ts';
import { Region, type ServedFile } from './region.ts';
import { type OnPlace, type Skipped, scanRoots } from './scan-roots.ts';

export interface LoadedRegion {
  /** The previous region itself if nothing has changed. */
  readonly region: Region;
  readonly skipped: readonly Skipped[];
}

export interface RegionSource {
  /** What is there now. Throws ServeError; `previous` stays as it is. */
  load(previous: Region | undefined, onPlace: OnPlace): Promise<LoadedRegion>;
}

/** The files below some roots. Those that have not changed are the same objects in the next region. */
export function rootsSource(
  roots: readonly string[],
  { all = false, alignBytes = ALIGN_BYTES_MIN }: { all?: boolean; alignBytes?: number },
): RegionSource {
  return {
    async load(previous, onPlace) {
      const { files: found, skipped } = await scanRoots(roots, { all, onPlace });
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
      return { region: makeRegion(files, alignBytes), skipped };
    },
  };
}

function makeRegion(files: readonly ServedFile[], alignBytes: number): Region {
  try {
    return new Region(files, alignBytes);
  } catch (cause) {
    if (cause instanceof ProtocolError) throw new ServeError('LIMIT', cause.message, { cause });
    throw cause;
  }
}
