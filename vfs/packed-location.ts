/**
 * Locations that lead into a packed region (`qanat pack`):
 *   file:///path/lake.qanat!/path     lake.qanat!/path     rdma://host:port/lake.qanat!/path     https://host/lake.qanat!/path
 * Before the `!` the packed file, without wildcards; behind it a path or a glob as in any source. A local packed file
 * alone means all files in it. A folder named like one is a folder.
 */
import { stat } from 'node:fs/promises';
import { FetchError } from '../fetcher/index.ts';
import { inPacked, type Location, parseLocation } from './location.ts';

/** Looks at local files where only that can tell what is meant. Throws FetchError BAD_URL, and NOT_FOUND. */
export async function locate(text: string, workingFolder?: string): Promise<Location> {
  const plain = parseLocation(text, workingFolder);
  const [, outside, mark, inside = ''] = packedForm(plain).exec(text) ?? [];
  if (outside === undefined || (mark === undefined && plain.scheme !== 'file')) return plain;
  const outer = parseLocation(outside, workingFolder);
  const { literal } = outer.glob;
  if (outer.scheme === 'file') {
    for (const path of new Set([outer.asWritten, literal ?? outer.asWritten])) {
      if (await isKind(path, 'isFile')) return inPacked(text, outer, path, inside);
    }
    if (mark === undefined || (await isKind(`${outer.asWritten}!`, 'isDirectory'))) return plain;
  }
  if (literal === undefined) {
    throw new FetchError('BAD_URL', `${JSON.stringify(text)}: the packed file in front of the ! has no wildcards`);
  }
  if (outer.scheme === 'file') throw new FetchError('NOT_FOUND', `there is no packed file ${outside}`);
  return inPacked(text, outer, literal, inside);
}

/** A packed file of a web server may have a query behind it. */
function packedForm({ scheme }: Location): RegExp {
  const ofServer = scheme === 'http' || scheme === 'https';
  return ofServer ? /^(.*?[^/]\.qanat(?:\?[^!]*)?)(!(?:\/(.*))?)?$/is : /^(.*?[^/]\.qanat)(!(?:\/(.*))?)?$/is;
}

async function isKind(path: string, kind: 'isFile' | 'isDirectory'): Promise<boolean> {
  return (await stat(`/${path}`).catch(() => undefined))?.[kind]() ?? false;
}
