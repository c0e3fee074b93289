/**
 * The thread that a mount lives in (mounted-source.ts): started with the settings, it says `ready` or `failed`, gives
 * figures when it is asked, and says `ended` once nothing is mounted any more.
 */
import { parentPort, workerData } from 'node:worker_threads';
import type { LogLevel } from '../log-names.ts';
import type { FromMount, MountSettings, ToMount } from './mount-messages.ts';
import { MountedSource, type MountLog } from './mounted-source.ts';
import { postError } from './posted-error.ts';

const port = parentPort!;
const post = (message: FromMount): void => port.postMessage(message);

const giveUp = new AbortController();
let mounted: MountedSource | undefined;

port.on('message', (message: ToMount) => {
  switch (message.kind) {
    case 'figures':
      post({ kind: 'figures', id: message.id, samples: mounted?.samples() ?? [] });
      return;
    case 'unmount':
      if (mounted === undefined) giveUp.abort();
      else void mounted.unmount(message.graceMs);
  }
});

try {
  mounted = await MountedSource.open(workerData as MountSettings, postedLog(), giveUp.signal);
  post({ kind: 'ready', facts: mounted.facts });
  if (giveUp.signal.aborted) void mounted.unmount(0);
  post({ kind: 'ended', end: await mounted.ended });
} catch (error) {
  post({ kind: 'failed', error: postError(error) });
}
// what still runs here has nothing to do any more; nothing of it may keep the process
port.close();

/** A log whose lines the main thread writes. Errors become texts here: no class survives being posted. */
function postedLog(): MountLog {
  const logAt =
    (level: LogLevel) =>
    (fields: unknown, text?: string): void => {
      const { err, ...plain } = fields as Record<string, unknown>;
      const error = err === undefined ? {} : { error: err instanceof Error ? err.message : String(err) };
      post({ kind: 'log', level, text: text ?? '', fields: { ...plain, ...error } });
    };
  return { debug: logAt('debug'), info: logAt('info'), warn: logAt('warn'), error: logAt('error') };
}
