/**
 * The load of a soak run: clients that scan in loops, files that are rewritten, a program that is killed and started again
 * or frozen for a while. It can be stopped at any time, which leaves nothing under way, and begun again.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { SoakLake } from './soak-lake.ts';
import { type SoakDaemon, SoakProgram, type SoakServer } from './soak-processes.ts';
import { daemonBatches } from './soak-reader.ts';
import { chooseWish, runScan, type ScanHabits, type ScanOutcome, type ScanRecord } from './soak-scans.ts';
import { type SoakWatch, Watched } from './soak-watch.ts';

/** Milliseconds in which a rewritten file has to be published. */
const PUBLISHED_MS = 15_000;
/** Milliseconds that a program is frozen: less than the server takes for the end of a client. */
const FROZEN_MS = 2_000;

export type Tally = Record<ScanOutcome, number> & { killed: number; rows: number };

export interface LoadOptions {
  readonly rdma: string;
  /** Milliseconds between two rewritings. */
  readonly rewriteMs: number;
  /** Publishes now and then before the watch does. */
  readonly hangsUp: boolean;
  /** Milliseconds between two batches of the slow reader. */
  readonly slowMs: number;
  readonly memoryBytes: number;
  readonly random: (below: number) => number;
}

/** Reads as fast as rows come, and goes away now and then. */
const QUICK: ScanHabits = { pauseMs: 0, giveUpOneOf: 6, fixedOneOf: 4, isWide: false };

export class SoakLoad {
  readonly tallies = new Map<string, Tally>();
  readonly #lake: SoakLake;
  readonly #watch: SoakWatch;
  readonly #server: SoakServer;
  readonly #options: LoadOptions;
  readonly #slow: ScanHabits;
  #program: SoakProgram;
  #watchedProgram: Watched;
  #restarting: Promise<void> | undefined;
  #isOn = false;
  #loops: Promise<void>[] = [];

  private constructor(
    lake: SoakLake,
    watch: SoakWatch,
    server: SoakServer,
    program: SoakProgram,
    watched: Watched,
    options: LoadOptions,
  ) {
    this.#lake = lake;
    this.#watch = watch;
    this.#server = server;
    this.#program = program;
    this.#watchedProgram = watched;
    this.#options = options;
    this.#slow = { pauseMs: options.slowMs, giveUpOneOf: 8, fixedOneOf: 3, isWide: true };
  }

  static async create(lake: SoakLake, watch: SoakWatch, server: SoakServer, options: LoadOptions): Promise<SoakLoad> {
    const program = await SoakProgram.start(options.rdma, options.memoryBytes, 0);
    const watched = new Watched('program', 'client', program.process, program.metrics);
    await watch.addClient(watched);
    return new SoakLoad(lake, watch, server, program, watched, options);
  }

  get programMetrics(): string {
    return this.#program.metrics;
  }

  /** `daemons`: a quick one with two readers, and one with a slow reader. */
  begin(quick: SoakDaemon, slow: SoakDaemon): void {
    this.#isOn = true;
    this.#loops = [
      this.#scanLoop('quick', QUICK, (habits) => this.#scanDaemon(quick, habits)),
      this.#scanLoop('quick', QUICK, (habits) => this.#scanDaemon(quick, habits)),
      this.#scanLoop('slow', this.#slow, (habits) => this.#scanDaemon(slow, habits)),
      this.#scanLoop('program', QUICK, (habits) => this.#scanProgram(habits)),
      this.#rewriteLoop(),
    ].map((loop) => loop.catch((error: Error) => this.#watch.complain(`the load has ended: ${error.stack}`)));
  }

  /** Lets scans that are under way come to their end, the slow one at full speed. */
  async pause(): Promise<void> {
    this.#isOn = false;
    await Promise.all(this.#loops);
    await this.#restarting;
  }

  /** Kills the program in the middle of what it does, and starts it again at the same address. */
  killProgram(): Promise<void> {
    this.#restarting = (async () => {
      const { process, metrics } = this.#program;
      await this.#watch.lastScrape(this.#watchedProgram);
      process.kill();
      await process.died();
      const { rdma, memoryBytes } = this.#options;
      this.#program = await SoakProgram.start(rdma, memoryBytes, Number(metrics.split(':')[1]));
      this.#watchedProgram = new Watched('program', 'client', this.#program.process, this.#program.metrics);
      await this.#watch.addClient(this.#watchedProgram);
    })().finally(() => {
      this.#restarting = undefined;
    });
    return this.#restarting;
  }

  /** The program does nothing for a while, not even take what it was sent. */
  async freezeProgram(): Promise<void> {
    const watched = this.#watchedProgram;
    watched.isFrozen = true;
    this.#program.process.freeze();
    await sleep(FROZEN_MS);
    this.#program.process.thaw();
    watched.isFrozen = false;
  }

  async stopProgram(): Promise<void> {
    await this.#program.stop();
  }

  async #scanLoop(
    client: string,
    habits: ScanHabits,
    scan: (habits: ScanHabits) => Promise<ScanRecord | 'killed'>,
  ): Promise<void> {
    const none: Tally = { complete: 0, stale: 0, 'given up': 0, FAILED: 0, killed: 0, rows: 0 };
    const tally = this.tallies.get(client) ?? none;
    this.tallies.set(client, tally);
    while (this.#isOn) {
      const record = await scan(habits);
      if (record === 'killed') {
        tally.killed++;
        await this.#restarting;
        continue;
      }
      const { outcome, rows, seen, began, ended, isWhole, failure } = record;
      tally[outcome]++;
      tally.rows += rows;
      if (failure !== undefined) this.#watch.complain(`${client}: a scan failed: ${failure}`);
      const complaint = this.#lake.complaint(seen, began, ended, isWhole);
      if (complaint !== undefined) this.#watch.complain(`${client}: a scan gave what it may not: ${complaint}`);
      // one that fails at once must not keep the machine busy
      if (failure !== undefined) await sleep(500);
    }
  }

  #scanDaemon({ http }: SoakDaemon, habits: ScanHabits): Promise<ScanRecord> {
    const wish = chooseWish(this.#options.random, habits);
    return runScan(
      (one) => daemonBatches(http, one),
      wish,
      () => !this.#isOn,
    );
  }

  async #scanProgram(habits: ScanHabits): Promise<ScanRecord | 'killed'> {
    const { random } = this.#options;
    const program = this.#program;
    try {
      const wish = chooseWish(random, habits);
      return await program.ask<ScanRecord>({ kind: 'scan', wish, ownSource: random(4) === 0 });
    } catch (error) {
      if (this.#restarting !== undefined) return 'killed';
      throw error;
    }
  }

  async #rewriteLoop(): Promise<void> {
    const { random, rewriteMs, hangsUp } = this.#options;
    while (this.#isOn) {
      const files = new Set(Array.from({ length: 1 + random(3) }, () => random(SoakLake.moving)));
      const published = this.#lake.publications;
      await this.#lake.rewrite([...files]);
      if (hangsUp && random(4) === 0) this.#server.process.child.kill('SIGHUP');
      if (!(await this.#within(PUBLISHED_MS, () => this.#lake.publications > published))) {
        this.#watch.complain(`what was rewritten was not published in ${PUBLISHED_MS} ms`);
      }
      await this.#within(rewriteMs, () => !this.#isOn);
    }
  }

  async #within(milliseconds: number, holds: () => boolean): Promise<boolean> {
    const until = performance.now() + milliseconds;
    while (!holds()) {
      if (performance.now() > until) return false;
      await sleep(20);
    }
    return true;
  }
}
