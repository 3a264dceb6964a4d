/** A value, or a promise of it: the memory driver answers at once, and its callers stay synchronous with it. */
export type MaybePromise<T> = T | Promise<T>;

/** Whether there is something to wait for. Asked by `then`: a promise may be of another realm or library. */
export function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  if (typeof value !== 'object' && typeof value !== 'function') return false;
  return value !== null && typeof (value as { then?: unknown }).then === 'function';
}

/** Goes on with a value at once, or when it is there: what is synchronous stays so. */
export function andThen<T, R>(
  value: T | PromiseLike<T>,
  next: (value: T) => MaybePromise<R>,
): MaybePromise<R> {
  return isPromiseLike(value) ? Promise.resolve(value).then(next) : next(value);
}

/** All values at once where none is a promise. */
export function allOf<T>(values: readonly (T | PromiseLike<T>)[]): MaybePromise<readonly T[]> {
  for (const value of values) if (isPromiseLike(value)) return Promise.all(values);
  return values as readonly T[];
}

/**
 * What `map` gives for all items, at once where none of it is a promise. Where it throws for one, what it began for
 * others is not left without anybody to hear of its failure: that would end the process.
 */
export function mapAll<T, R>(
  items: readonly T[],
  map: (item: T) => R | PromiseLike<R>,
): MaybePromise<readonly R[]> {
  const values: (R | PromiseLike<R>)[] = [];
  try {
    for (const item of items) values.push(map(item));
  } catch (error) {
    for (const value of values) if (isPromiseLike(value)) void value.then(undefined, () => {});
    throw error;
  }
  return allOf(values);
}

/** What `work` gives; where it throws or rejects, what `recover` makes of that. */
export function orElse<T>(
  work: () => T | PromiseLike<T>,
  recover: (error: unknown) => MaybePromise<T>,
): MaybePromise<T> {
  try {
    const value = work();
    return isPromiseLike(value) ? Promise.resolve(value).catch(recover) : value;
  } catch (error) {
    return recover(error);
  }
}
