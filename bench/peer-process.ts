/** Child processes that benchmarks ask for figures: one question, one answer, over the channel of `fork`. */
import { type ChildProcess, fork } from 'node:child_process';

export interface PeerProcess extends AsyncDisposable {
  /** Throws what the other process threw, or that it ended. */
  ask<Answer>(question: object): Promise<Answer>;
}

/** Starts a script of this folder. */
export function startPeer(script: string, flags: readonly string[] = []): PeerProcess {
  const child: ChildProcess = fork(new URL(script, import.meta.url), {
    execArgv: [...process.execArgv, ...flags],
    serialization: 'advanced',
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  return {
    ask: (question) =>
      new Promise((resolve, reject) => {
        const onExit = (code: number | null, signal: string | null): void => {
          reject(new Error(`${script} ended with ${signal ?? `code ${code}`}`));
        };
        child.once('exit', onExit);
        child.once('message', ({ answer, error }: { answer: never; error?: string }) => {
          child.off('exit', onExit);
          if (error === undefined) resolve(answer);
          else reject(new Error(`${script}: ${error}`));
        });
        child.send(question);
      }),
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.disconnect();
      await ended;
    },
  };
}

/** Answers questions until the asking process goes away. */
export function answerQuestions<Question>(answer: (question: Question) => Promise<unknown>): void {
  process.on('message', (question: Question) => {
    answer(question).then(
      (value) => process.send!({ answer: value }),
      (error: unknown) => process.send!({ error: error instanceof Error ? error.stack : String(error) }),
    );
  });
  process.on('disconnect', () => process.exit());
}

/** Milliseconds of processor time that this process has used, all threads. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
