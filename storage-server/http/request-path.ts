/** The target of a request: its path and query as they were sent, still encoded. */

/** Path and query; proxies send the whole address. */
export function splitTarget(url: string | undefined): { readonly path: string; readonly query: string } | undefined {
  const target = /^(?:https?:\/\/[^/?#]*)?(\/[^?#]*|(?=\?|$))(?:\?([^#]*))?(?:#.*)?$/is.exec(url ?? '');
  if (target === null) return undefined;
  return { path: target[1] === '' ? '/' : target[1]!, query: target[2] ?? '' };
}

/** The path alone. */
export function pathOf(url: string | undefined): string | undefined {
  return splitTarget(url)?.path;
}
