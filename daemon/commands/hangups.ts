/**
 * SIGHUP, by which a process that stays is told to look again at what it was started with. It must never end one: one
 * that comes while the process starts waits for that, one that comes while it stops means nothing.
 */
export class Hangups {
  #isDue = false;
  #callback: (() => void) | undefined;

  constructor() {
    process.on('SIGHUP', this.#onSignal);
  }

  /** Calls at each SIGHUP from now on, and at once for one that came before. */
  onHangup(callback: () => void): void {
    this.#callback = callback;
    if (this.#isDue) callback();
  }

  /** From now on a SIGHUP does what it does to any process. */
  dispose(): void {
    process.off('SIGHUP', this.#onSignal);
  }

  readonly #onSignal = (): void => {
    this.#isDue = true;
    this.#callback?.();
  };
}
