// A module hook: it runs in a thread of its own, so it shares nothing with loaded-modules.mjs but the file.
import { appendFileSync } from 'node:fs';

let log;

export function initialize(file) {
  log = file;
}

export function resolve(specifier, context, next) {
  appendFileSync(log, `${specifier}\n`);
  return next(specifier, context);
}
