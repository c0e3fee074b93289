/** Levels and formats of logs as options name them; apart from log.ts, so that help need not load what writes logs. */

/** The least severe first. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const LOG_FORMATS = ['auto', 'human', 'json'] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];
