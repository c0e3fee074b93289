/**
 * `/files/<path>` and `/region` over HTTP: files of the region under their paths, and the region as `qanat pack` would
 * write it. A path is looked up among those of the region and nowhere else: no request reaches the file system. Where
 * tokens are asked for, the region is what the token sees, and without one that is known all requests are the same.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { bearerToken } from '../access/tokens.ts';
import type { Door } from './door.ts';
import type { RequestKind } from './door-counters.ts';
import { findByPath } from './path-order.ts';
import { planAnswer } from './plan-answer.ts';
import { BlockFault } from './region-blocks.ts';
import { fileRepresentation, type Representation, regionRepresentation } from './representation.ts';
import { pathOf } from './request-path.ts';

const FILES = '/files/';
const REGION = '/region';

/** The same for a wrong token and for none. */
export const TOKEN_NEEDED = 'a token that is known here is needed: Authorization: Bearer <token>';

/** Seconds after which to ask again for a file that has changed: a publication is likely on its way. */
const RETRY_AFTER = 1;

/** Answers what is about files or the region; false, and nothing done, if the request is about something else. */
export function answerFiles(door: Door, request: IncomingMessage, response: ServerResponse): boolean {
  const path = pathOf(request.url);
  const kind: RequestKind | undefined = path === REGION ? 'region' : path?.startsWith(FILES) ? 'files' : undefined;
  if (path === undefined || kind === undefined) return false;
  door.serve(request, response, async () => {
    const say = (status: number, text: string, headers: Record<string, string | number> = {}): void => {
      const about = { 'Content-Type': 'text/plain; charset=utf-8', ...headers };
      door.say(kind, request, response, { status, headers: about, text: `${text}\n` });
    };
    const sight = door.guard.admit(bearerToken(request.headers.authorization), 'http');
    if (sight === undefined) return say(401, TOKEN_NEEDED, { 'WWW-Authenticate': 'Bearer realm="qanat"' });
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return say(405, 'only GET and HEAD', { Allow: 'GET, HEAD' });
    }
    if (door.closing) return say(503, 'the server is shutting down');
    let representation: Representation | undefined;
    if (kind === 'region') {
      representation = regionRepresentation(sight);
    } else {
      const name = decodePath(path.slice(FILES.length));
      if (name === undefined) return say(400, 'the path is not percent-encoded UTF-8');
      const entry = findByPath(sight.regions.current.directory.entries, name);
      if (entry !== undefined) representation = fileRepresentation(sight, entry);
    }
    if (representation === undefined) return say(404, 'no such file');
    const plan = planAnswer(request.headers, representation, { ranged: request.method === 'GET' });
    if (plan.status === 416) return say(416, 'the range begins behind the end', plan.headers);
    if (plan.status === 412) return say(412, 'it is not the version that was asked for', plan.headers);
    try {
      await door.send(kind, request, response, plan, representation);
    } catch (error) {
      if (!(error instanceof BlockFault)) throw error;
      say(503, error.message, { 'Retry-After': RETRY_AFTER });
    }
  });
  return true;
}

/** The path of a file; undefined if it is none. Encoded slashes are no separators, so that they match nothing. */
function decodePath(text: string): string | undefined {
  try {
    const segments = text.split('/').map((segment) => decodeURIComponent(segment));
    // No name in a region has any of these: this is only the last word on it.
    return segments.some((one) => one.includes('/') || one.includes('\0')) ? '' : segments.join('/');
  } catch {
    return undefined;
  }
}
