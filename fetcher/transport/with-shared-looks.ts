/**
 * Listings and look-ups of the same name share requests: who asks while one is under way shares the next one with all who
 * ask meanwhile. Nobody is given an answer that may be older than the question.
 */
import type { FindOptions, Transport } from './transport.ts';

/** Wraps a transport so that equal looks are not made side by side. */
export function withSharedLooks(inner: Transport): Transport {
  const { find } = inner;
  const list = shared((prefix) => inner.list(prefix));
  return {
    list,
    ...(find === undefined ? {} : { find: shared((path, options?: FindOptions) => inner.find!(path, options)) }),
    read: (file, start, into, options) => inner.read(file, start, into, options),
    close: () => inner.close(),
  };
}

interface Looks<T> {
  /** Under way. */
  current: Promise<T>;
  /** Begins when that one has ended. */
  next: Promise<T> | undefined;
}

/** `options` are those of who asked first: what they ask for beyond the answer may be had or not. */
function shared<T, O>(look: (name: string, options?: O) => Promise<T>): (name: string, options?: O) => Promise<T> {
  const looks = new Map<string, Looks<T>>();

  function begin(name: string, options?: O): Promise<T> {
    const entry: Looks<T> = { current: look(name, options), next: undefined };
    looks.set(name, entry);
    const ended = (): void => {
      if (entry.next === undefined) looks.delete(name);
    };
    entry.current.then(ended, ended);
    return entry.current;
  }

  return (name, options) => {
    const under = looks.get(name);
    if (under === undefined) return begin(name, options);
    under.next ??= under.current.then(
      () => begin(name, options),
      () => begin(name, options),
    );
    return under.next;
  };
}
