/** The error class of the command: what a person has asked for and can't have. Reading has errors of its own. */
export type CommandErrorCode =
  | 'USAGE' // options that make no sense, alone or together
  | 'CONFIG' // a configuration that makes no sense
  | 'CONFIG_FILE' // a configuration that can't be read
  | 'OUTPUT' // the output can't be written
  | 'OUTPUT_CLOSED' // who reads our output has gone, which ends the command quietly
  | 'INTERRUPTED' // a signal asked to end
  | 'LISTEN' // an address that can't be listened on
  | 'SERVER' // a server process of our own did not start or ended
  | 'CHECK'; // a result is not what it has to be

export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly code: CommandErrorCode;
  /** Lines that say more, for people. */
  readonly details: readonly string[];

  constructor(code: CommandErrorCode, reason: string, options: { cause?: unknown; details?: readonly string[] } = {}) {
    super(reason, options.cause === undefined ? {} : { cause: options.cause });
    this.code = code;
    this.details = options.details ?? [];
  }
}
