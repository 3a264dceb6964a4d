// A module hook: it runs in a thread of its own, so it prints at once.
import { writeSync } from 'node:fs';

export function resolve(specifier, context, next) {
  writeSync(1, `${specifier}\n`);
  return next(specifier, context);
}
