import type { Driver, SynchronousDriver } from 'nestjs-distlimit';

/** What a test puts in place of a driver's own members. */
export type Replacements = Partial<Record<keyof Driver, unknown>>;

/** A driver with some members replaced, also later on. It has no synchronous side unless `members` brings one. */
export function wrapped(inner: Driver, members: Replacements): Driver {
  return {
    name: 'wrapped',
    decide: (group) => inner.decide(group),
    peek: (counter) => inner.peek(counter),
    refund: (counter, receipt) => inner.refund(counter, receipt),
    giveBack: (counter, cost) => inner.giveBack(counter, cost),
    reset: (counter) => inner.reset(counter),
    block: (counter, durationMs) => inner.block(counter, durationMs),
    unblock: (counter) => inner.unblock(counter),
    status: () => inner.status(),
    close: () => inner.close(),
    ...(members as Partial<Driver>),
  };
}

/** A driver that decides a turn of the event loop later, as one behind a network does. */
export function delayed(inner: Driver): Driver {
  const later = () => new Promise<void>((resolve) => void setImmediate(resolve));
  return wrapped(inner, {
    decide: async (group: Parameters<Driver['decide']>[0]) => {
      await later();
      return inner.decide(group);
    },
    refund: async (...args: Parameters<Driver['refund']>) => {
      await later();
      return inner.refund(...args);
    },
  });
}

/** Members that fail, each with this error. */
export function failing(error: Error, ...names: (keyof Driver)[]): Replacements {
  const fail = () => {
    throw error;
  };
  return Object.fromEntries(names.map((name) => [name, fail]));
}

/** A synchronous side that fails. */
export function failingSynchronous(error: Error): SynchronousDriver {
  return failing(error, 'decideOne' as never, 'tryTake' as never) as unknown as SynchronousDriver;
}
