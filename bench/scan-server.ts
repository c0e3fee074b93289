/** A storage server in a process of its own that says how much processor time it has used. */
import { type RunningServer, serveRegion } from '../storage-server/index.ts';
import { answerQuestions, cpuMs } from './peer-process.ts';

export type ServerQuestion = { readonly kind: 'serve'; readonly file: string } | { readonly kind: 'cpu' };

let server: RunningServer | undefined;

answerQuestions<ServerQuestion>(async (question) => {
  if (question.kind === 'cpu') return cpuMs();
  server = await serveRegion({ roots: [question.file], listen: { host: '127.0.0.1', port: 0 } });
  return server.address().port;
});
