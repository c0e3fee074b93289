/**
 * Tells one peer of new generations. A peer that does not take its bytes has one event under way, however many
 * generations there are meanwhile, and afterwards hears of the last one only.
 */
import type { Socket } from 'node:net';
import { encodeGenerationEvent } from './protocol/index.ts';
import type { RegionHolder } from './region-holder.ts';
import type { VerbsSession } from './verbs-session.ts';

export class GenerationNotice {
  readonly #socket: Socket;
  readonly #regions: RegionHolder;
  readonly #verbs: VerbsSession;
  /** The socket has not taken the last event yet, and whether there has been another generation since. */
  #state: 'told' | 'telling' | 'telling, and another is due' = 'told';
  /** Key of the region that the peer knows of, or is about to. */
  #known: number;

  /** For a peer that is welcomed with the region of now. */
  constructor(socket: Socket, regions: RegionHolder, verbs: VerbsSession) {
    this.#socket = socket;
    this.#regions = regions;
    this.#verbs = verbs;
    this.#known = regions.current.rkey;
  }

  /** Whether another region is served than the peer knows of. */
  get isDue(): boolean {
    return this.#known !== this.#regions.current.rkey;
  }

  /** Tells of the region that is served now; `checksum` as it was granted. */
  tell(checksum: boolean): void {
    this.#known = this.#regions.current.rkey;
    if (!this.#socket.writable) return;
    if (this.#state !== 'told') {
      this.#state = 'telling, and another is due';
      return;
    }
    this.#state = 'telling';
    this.#verbs.tell(this.#regions.current, checksum);
    const { generation, rkey, length: regionLength } = this.#regions.current;
    this.#socket.write(encodeGenerationEvent({ generation, rkey, regionLength }, checksum), () => {
      const isDue = this.#state === 'telling, and another is due';
      this.#state = 'told';
      if (isDue) this.tell(checksum);
    });
  }
}
