/**
 * SIGINT and SIGTERM for commands: the first asks everything to end in order, a second one, or an end that takes too
 * long, ends the process there and then.
 */
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { INTERRUPTION_GRACE_MS, SIGNAL_REPEAT_MS } from './limits.ts';

export class Interruption {
  /** The exit code that the signal asks for; undefined while there was none. */
  code: ExitCode | undefined;
  /** Whether an orderly end is bounded by INTERRUPTION_GRACE_MS; a server has a bound of its own. */
  bounded = true;
  readonly #controller = new AbortController();
  #at = 0;

  constructor() {
    process.on('SIGINT', this.#onSigint);
    process.on('SIGTERM', this.#onSigterm);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  readonly #onSigint = (): void => this.#end(EXIT.INTERRUPTED);
  readonly #onSigterm = (): void => this.#end(EXIT.TERMINATED);

  #end(code: ExitCode): void {
    const now = performance.now();
    if (this.code !== undefined) {
      // A terminal and a parent may both pass on the same Ctrl-C.
      if (now - this.#at > SIGNAL_REPEAT_MS) process.exit(this.code);
      return;
    }
    this.code = code;
    this.#at = now;
    if (this.bounded) setTimeout(() => process.exit(code), INTERRUPTION_GRACE_MS).unref();
    this.#controller.abort();
  }

  dispose(): void {
    process.off('SIGINT', this.#onSigint);
    process.off('SIGTERM', this.#onSigterm);
  }
}
