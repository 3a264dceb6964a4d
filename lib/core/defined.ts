/** Options of which none is `undefined`. */
export type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** The options that were given: without those that are `undefined`, so that a default holds for them. */
export function defined<T extends object>(options: T): Defined<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Defined<T>;
}
