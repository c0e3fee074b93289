/**
 * Logs of the processes that stay: one line an event, on standard error, so that standard output keeps what a command
 * answers. For people where a terminal shows them, JSON (pino's) where a program reads them. Nothing that is logged
 * shows a secret (secrets.ts), and no name from a file or a peer can talk to the terminal.
 */
import { type LogFn, type Logger, pino } from 'pino';
import type { LogFormat, LogLevel } from './log-names.ts';
import { printable } from './output/printable.ts';
import { redactValue } from './secrets.ts';

export interface LogOptions {
  /** The command whose log it is. */
  readonly command: string;
  readonly level?: LogLevel;
  readonly format?: LogFormat;
  /** Takes whole lines; standard error when absent. */
  readonly write?: (line: string) => void;
}

/** What of pino is used: `log.info({ source: 'lake' }, 'opened')`. Fields first, as pino has it. */
export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error' | 'level'>;

export function createLog({ command, level = 'info', format = 'auto', write = toStandardError }: LogOptions): Log {
  const human = format === 'human' || (format === 'auto' && process.stderr.isTTY === true);
  return pino(
    {
      level,
      base: { command },
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { logMethod: logRedacted },
      // done by the hook, which sees messages too
      serializers: { err: (error) => error },
    },
    { write: human ? (line: string) => write(humanLine(line)) : write },
  );
}

function logRedacted(this: Logger, args: Parameters<LogFn>, method: LogFn): void {
  const clean = (args as unknown[]).map((one) => redactValue(one));
  if ((args[0] as unknown) instanceof Error) clean[0] = { err: clean[0] };
  method.apply(this, clean as Parameters<LogFn>);
}

function toStandardError(line: string): void {
  process.stderr.write(line);
}

const SHOWN_ELSEWHERE = new Set(['level', 'time', 'command', 'msg']);

/** `12:34:56.789 qanat daemon: opened  source=lake`, and the level where it is more or less than information. */
export function humanLine(json: string): string {
  const entry = JSON.parse(json) as Record<string, unknown>;
  const time = typeof entry.time === 'string' ? entry.time : '';
  const level = entry.level === 'info' ? '' : `${entry.level}: `;
  const fields = Object.entries(entry).filter(([name]) => !SHOWN_ELSEWHERE.has(name));
  const told = fields.map(([name, value]) => `  ${name}=${humanValue(value)}`).join('');
  return `${printable(`${time} qanat ${entry.command}: ${level}${entry.msg ?? ''}${told}`)}\n`;
}

function humanValue(value: unknown): string {
  if (typeof value === 'object' && value !== null) {
    const { message, stack } = value as { message?: unknown; stack?: unknown };
    if (typeof message === 'string' && stack !== undefined) return message;
    return JSON.stringify(value);
  }
  const text = String(value);
  return /^[^\s"=]+$/.test(text) ? text : JSON.stringify(text);
}
