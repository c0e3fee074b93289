/**
 * What each scope sees of the region that is served: a region of its own, with its own directory, addresses, key and
 * generation, so that what lies outside has no name and no address there. The same files keep the same generation:
 * whoever sees a part is not told when something else changes.
 */
import { makeRegion, type Region } from '../region.ts';
import { RegionHolder } from '../region-holder.ts';
import type { Scope } from './scope.ts';

export class RegionViews {
  readonly #whole: RegionHolder;
  readonly #views = new Map<string, { readonly scope: Scope; readonly holder: RegionHolder }>();

  /** Follows `whole`; who hears of its publications after this sees views that are up to date. */
  constructor(whole: RegionHolder) {
    this.#whole = whole;
    whole.onPublished((region) => {
      for (const { scope, holder } of this.#views.values()) follow(holder, region, scope);
    });
  }

  /** What a scope sees, now and later. */
  of(scope: Scope): RegionHolder {
    if (scope.isEverything) return this.#whole;
    let view = this.#views.get(scope.key);
    if (view === undefined) {
      view = { scope, holder: new RegionHolder(partOf(this.#whole.current, scope)) };
      this.#views.set(scope.key, view);
    }
    return view.holder;
  }

  /** Forgets all but these: nobody asks for others any more. */
  keep(scopes: ReadonlySet<string>): void {
    for (const key of this.#views.keys()) if (!scopes.has(key)) this.#views.delete(key);
  }
}

function partOf({ files, directory, pinned }: Region, scope: Scope): Region {
  const visible = files.filter(({ path }) => scope.covers(path));
  return makeRegion(visible, directory.alignBytes, pinned);
}

function follow(holder: RegionHolder, whole: Region, scope: Scope): void {
  const { current } = holder;
  const known = new Set(current.files);
  const visible = whole.files.filter(({ path }) => scope.covers(path));
  const isSame = visible.length === known.size && visible.every((file) => known.has(file));
  if (isSame) current.pinned = whole.pinned;
  else holder.publish(makeRegion(visible, whole.directory.alignBytes, whole.pinned));
}
