/**
 * The watch over the processes of a soak run: scrapes all of them every second as a monitor does, waits until they are at
 * rest, and keeps what they held at the start, after the warm-up and at each rest. Every complaint is kept.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Holdings,
  Scrape,
  SHARED_STATUSES,
  type Side,
  type Traffic,
  trafficLeft,
  unequal,
} from './soak-figures.ts';
import type { SoakProcess } from './soak-processes.ts';

/** Milliseconds between two scrapes. */
const SCRAPE_MS = 1_000;
/** Attempts of one scrape: where this process has to wait for the processor it may be too late with its request. */
const ATTEMPTS = 3;
/** Milliseconds to come to rest: reads that were given up, connections that are being closed. */
const REST_MS = 15_000;
/** Descriptors: Prometheus's connection, and one that is being closed. */
const DESCRIPTORS_MORE_MAX = 2;
/** Complaints that are kept, and those of one kind, which differ by their numbers only. */
const COMPLAINTS_MAX = 50;
const COMPLAINTS_ALIKE_MAX = 3;
/** Bytes that a client which is killed may have been sent after its last scrape: what is under way, and a moment's worth. */
const KILLED_BYTES_MAX = 32 << 20;

/** What a process has at a rest. */
export interface Rest extends Holdings {
  readonly heapFloor: number;
  readonly externalFloor: number;
}

const NO_FLOOR = { heap: Number.POSITIVE_INFINITY, external: Number.POSITIVE_INFINITY };

/** One process, from its start to its end. */
export class Watched {
  readonly name: string;
  readonly side: Side;
  readonly process: SoakProcess;
  readonly address: string;
  isFrozen = false;
  first: Scrape | undefined;
  last: Scrape | undefined;
  rssMax = 0;
  /** Least heap, and bytes outside it, of the scrapes since the last rest: what a collection leaves. */
  floor = { ...NO_FLOOR };

  constructor(name: string, side: Side, process: SoakProcess, address: string) {
    this.name = name;
    this.side = side;
    this.process = process;
    this.address = address;
  }
}

export class SoakWatch {
  readonly complaints: string[] = [];
  readonly answerMs: number[] = [];
  readonly server: Watched;
  /** By name: a process that is started again goes on with those of the one before. */
  readonly rests = new Map<string, readonly Rest[]>();
  /** What was sent to clients that were killed and is in no scrape of theirs. */
  lost: Traffic = { bytes: 0, reads: {} };
  readonly #clients = new Map<string, Watched>();
  /** Traffic of clients that are no more. */
  readonly #past: Traffic[] = [];
  readonly #onComplaint: (complaint: string) => void;
  readonly #onScrape = new Map<Watched, Promise<void>>();
  #kills = 0;
  #killsAtRest = 0;
  #isOver = false;
  #watching: Promise<void> | undefined;

  constructor(server: Watched, onComplaint: (complaint: string) => void) {
    this.server = server;
    this.#onComplaint = onComplaint;
  }

  get clients(): readonly Watched[] {
    return [...this.#clients.values()];
  }

  get all(): readonly Watched[] {
    return [this.server, ...this.#clients.values()];
  }

  get kills(): number {
    return this.#kills;
  }

  /** What clients that were killed had received at their last scrapes. */
  get pastTraffic(): Traffic {
    return {
      bytes: this.#past.reduce((sum, { bytes }) => sum + bytes, 0),
      reads: Object.fromEntries(
        SHARED_STATUSES.map((status) => [status, this.#past.reduce((sum, { reads }) => sum + reads[status]!, 0)]),
      ),
    };
  }

  /** READs that the server has completed with an error. */
  get readErrors(): number {
    const { SUCCESS: _, ...errors } = this.server.last!.traffic.reads;
    return Object.values(errors).reduce((sum, reads) => sum + reads, 0);
  }

  complain(complaint: string): void {
    const kind = complaint.replace(/\d+/g, '#');
    const alike = this.complaints.filter((other) => other.replace(/\d+/g, '#') === kind);
    if (this.complaints.length >= COMPLAINTS_MAX || alike.length >= COMPLAINTS_ALIKE_MAX) return;
    this.complaints.push(complaint);
    this.#onComplaint(complaint);
  }

  /** Takes the place of the client of the same name, if there was one. */
  async addClient(client: Watched): Promise<void> {
    this.#clients.set(client.name, client);
    await this.scrape(client);
  }

  /** A last scrape of a client that is about to be killed. */
  async lastScrape(client: Watched): Promise<void> {
    await this.scrape(client);
    this.#kills++;
    this.#clients.delete(client.name);
    this.#past.push(client.last!.traffic);
  }

  /** Scrapes all every second until `end` is called. */
  begin(): void {
    this.#watching = (async () => {
      while (!this.#isOver) {
        await Promise.all(this.all.filter(({ isFrozen }) => !isFrozen).map((one) => this.scrape(one)));
        await sleep(SCRAPE_MS);
      }
    })().catch((error: Error) => this.complain(`the watch has ended: ${error.stack}`));
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#watching;
  }

  /** One after the other for each process, so that what is compared is in order. */
  scrape(watched: Watched): Promise<void> {
    const turn = (this.#onScrape.get(watched) ?? Promise.resolve()).then(() => this.#scrape(watched));
    this.#onScrape.set(watched, turn);
    return turn;
  }

  async #scrape(watched: Watched): Promise<void> {
    const isWatched = (): boolean =>
      !this.#isOver && !watched.isFrozen && (this.#clients.get(watched.name) === watched || watched === this.server);
    let scrape: Scrape | undefined;
    for (let left = ATTEMPTS; scrape === undefined; left--) {
      try {
        scrape = await Scrape.of(watched.side, watched.address);
      } catch (error) {
        if (!isWatched()) return;
        if (left > 1) continue;
        const reason = watched.process.unexpectedEnd ?? (error as Error).message;
        this.complain(`${watched.name} is not scraped: ${reason}`);
        return;
      }
    }
    for (const contradiction of scrape.contradictions) this.complain(`${watched.name}: ${contradiction}`);
    for (const fallen of watched.last === undefined ? [] : scrape.fallenSince(watched.last)) {
      this.complain(`${watched.name}: ${fallen}`);
    }
    const { rssBytes, heapBytes, externalBytes } = scrape.holdings;
    const { heap, external } = watched.floor;
    watched.rssMax = Math.max(watched.rssMax, rssBytes);
    watched.floor = { heap: Math.min(heap, heapBytes), external: Math.min(external, externalBytes) };
    watched.first ??= scrape;
    watched.last = scrape;
    this.answerMs.push(scrape.ms);
  }

  /** Waits until nothing is under way anywhere, and checks that both ends say the same. */
  async rest(): Promise<void> {
    const until = performance.now() + REST_MS;
    for (;;) {
      await Promise.all(this.all.map((one) => this.scrape(one)));
      const unrest = this.#unrest();
      if (unrest === undefined) break;
      if (performance.now() > until) {
        this.complain(`not at rest: ${unrest}`);
        break;
      }
      await sleep(100);
    }
    for (const one of this.all) {
      const { heap, external } = one.floor;
      const rests = this.rests.get(one.name) ?? [];
      this.rests.set(one.name, [...rests, { ...one.last!.holdings, heapFloor: heap, externalFloor: external }]);
      one.floor = { ...NO_FLOOR };
    }
    this.#checkTraffic();
  }

  #unrest(): string | undefined {
    for (const { name, last, first } of this.all) {
      if (last!.unrest !== undefined) return `${name}: ${last!.unrest}`;
      const { poolBytes, descriptors } = last!.holdings;
      const start = first!.holdings;
      if (poolBytes !== start.poolBytes) {
        return `${name}: ${poolBytes} bytes of the pool are in use, ${start.poolBytes} at the start`;
      }
      if (descriptors > start.descriptors + DESCRIPTORS_MORE_MAX) {
        return `${name}: ${descriptors} descriptors, ${start.descriptors} at the start`;
      }
    }
    const pairs = this.server.last!.holdings.queuePairs;
    const known = this.clients.reduce((sum, { last }) => sum + last!.holdings.queuePairs, 0);
    return pairs === known ? undefined : `serve: ${pairs} queue pairs, of which its clients have ${known}`;
  }

  #checkTraffic(): void {
    const alive = this.clients.map(({ last }) => last!.traffic);
    const left = trafficLeft(this.server.last!.traffic, [...this.#past, ...alive]);
    const kills = this.#kills - this.#killsAtRest;
    const says = kills === 0 ? '' : ` (${kills} killed)`;
    const wrong = [
      ...unequal(
        `bytes sent and not received${says}`,
        left.bytes,
        this.lost.bytes,
        kills === 0 ? 'exactly' : 'at least',
      ),
      ...unequal(`the same${says}`, left.bytes, this.lost.bytes + kills * KILLED_BYTES_MAX, 'at most'),
      ...SHARED_STATUSES.flatMap((status) =>
        unequal(
          `READs completed with ${status} there and not here${says}`,
          left.reads[status]!,
          this.lost.reads[status] ?? 0,
          kills === 0 ? 'exactly' : 'at least',
        ),
      ),
    ];
    for (const one of wrong) this.complain(`at rest: ${one}`);
    this.lost = left;
    this.#killsAtRest = this.#kills;
  }
}
