/**
 * Arrays whose items are made when they are first read, each once: a scan of ten columns out of ten thousand makes ten.
 * To whoever reads them they are arrays, slower by a lookup. They can't be written to, sorted in place or posted to
 * another thread. Short ones are made at once and are plain arrays.
 */
import { EAGER_ITEMS_MAX } from './limits.ts';

/** `make` must not throw: an item is read far from where its error would mean something. */
export function lazyList<T>(length: number, make: (index: number) => T): readonly T[] {
  if (length <= EAGER_ITEMS_MAX) return Array.from({ length }, (_, index) => make(index));
  return new Proxy<T[]>([], new LazyItems(length, make));
}

class LazyItems<T> implements ProxyHandler<T[]> {
  readonly #length: number;
  readonly #make: (index: number) => T;
  readonly #made = new Map<number, T>();

  constructor(length: number, make: (index: number) => T) {
    this.#length = length;
    this.#make = make;
  }

  get(target: T[], key: string | symbol): unknown {
    if (key === 'length') return this.#length;
    const index = this.#index(key);
    return index < 0 ? Reflect.get(target, key) : this.#item(index);
  }

  has(target: T[], key: string | symbol): boolean {
    return this.#index(key) >= 0 || Reflect.has(target, key);
  }

  ownKeys(): string[] {
    return [...Array.from({ length: this.#length }, (_, index) => String(index)), 'length'];
  }

  getOwnPropertyDescriptor(target: T[], key: string | symbol): PropertyDescriptor | undefined {
    if (key === 'length') return { value: this.#length, writable: true, enumerable: false, configurable: false };
    const index = this.#index(key);
    if (index < 0) return Reflect.getOwnPropertyDescriptor(target, key);
    return { value: this.#item(index), writable: true, enumerable: true, configurable: true };
  }

  set(): boolean {
    return false;
  }

  defineProperty(): boolean {
    return false;
  }

  deleteProperty(): boolean {
    return false;
  }

  /** The item's index that a property's name is, or -1. */
  #index(key: string | symbol): number {
    if (typeof key !== 'string') return -1;
    const first = key.charCodeAt(0);
    if (!(first >= 48 && first <= 57)) return -1;
    const index = Number(key);
    return index < this.#length && String(index) === key && Number.isInteger(index) ? index : -1;
  }

  #item(index: number): T {
    const made = this.#made.get(index);
    if (made !== undefined) return made;
    const item = this.#make(index);
    this.#made.set(index, item);
    return item;
  }
}
