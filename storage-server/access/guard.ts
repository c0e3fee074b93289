/**
 * Who may see what of a server. Without tokens everybody sees everything; with them, who shows one sees what it is for,
 * and everybody else nothing. A token that is taken away, or is for something else now, ends what was let in with it.
 */
import type { RegionHolder } from '../region-holder.ts';
import { AccessCounters, type DoorName } from './access-counters.ts';
import { RegionViews } from './region-views.ts';
import { EVERYTHING } from './scope.ts';
import type { TokenGrant, Tokens } from './tokens.ts';

/** Somebody who was let in. */
export interface Admission {
  /** Of the token; undefined where none is asked for. */
  readonly name: string | undefined;
  /** What is there for them. */
  readonly regions: RegionHolder;
  /** Whether that is all there is: nobody else may get at memory that holds more (RDMA). */
  readonly seesEverything: boolean;
  readonly seesMetrics: boolean;
  /** False when it was taken back: nothing may be given any more. */
  readonly isGood: boolean;
}

interface Granted extends Admission {
  readonly grant: TokenGrant;
  isGood: boolean;
}

export class Guard {
  readonly counters = new AccessCounters();
  readonly #views: RegionViews;
  readonly #everybody: Admission;
  #tokens: Tokens | undefined;
  /** Those who were let in, by what they were let in for. */
  readonly #granted = new Map<string, Granted>();
  readonly #listeners: (() => void)[] = [];

  /** `tokens` of those who are let in; everybody is without. */
  constructor(whole: RegionHolder, tokens: Tokens | undefined) {
    this.#views = new RegionViews(whole);
    this.#everybody = { name: undefined, regions: whole, seesEverything: true, seesMetrics: true, isGood: true };
    this.#tokens = tokens;
  }

  /** Whether a token is asked for. */
  get isAsking(): boolean {
    return this.#tokens !== undefined;
  }

  /** Lets somebody in who shows this token, or none. Undefined for one that is not known, as for none where one is asked for. */
  admit(token: string | undefined, door: DoorName): Admission | undefined {
    if (this.#tokens === undefined) return this.#everybody;
    const grant = this.#tokens.holderOf(token);
    if (grant === undefined) {
      this.counters.authentication[door]++;
      return undefined;
    }
    let granted = this.#granted.get(grant.id);
    if (granted === undefined) {
      const { name, scope, seesMetrics } = grant;
      const seesEverything = scope.isEverything;
      granted = { name, regions: this.#views.of(scope), seesEverything, seesMetrics, grant, isGood: true };
      this.#granted.set(grant.id, granted);
    }
    return granted;
  }

  /** Called when somebody who was let in may not be any more. */
  onRevoked(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Takes over other tokens. */
  replace(tokens: Tokens): void {
    this.#tokens = tokens;
    const scopes = new Set<string>([EVERYTHING.key]);
    let isRevoked = false;
    for (const [id, granted] of this.#granted) {
      if (tokens.keeps(granted.grant)) scopes.add(granted.grant.scope.key);
      else {
        this.#granted.delete(id);
        granted.isGood = false;
        isRevoked = true;
      }
    }
    this.#views.keep(scopes);
    if (isRevoked) for (const listener of this.#listeners) listener();
  }
}
