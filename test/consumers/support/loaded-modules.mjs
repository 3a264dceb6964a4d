// Loads the package in every form it has, and writes each specifier that was asked for meanwhile to the file
// given, one a line. A file and not a pipe: what isn't read at once would block or fail.
import { appendFileSync } from 'node:fs';
import Module, { createRequire, register } from 'node:module';

const log = process.argv[2];

const original = Module.prototype.require;
Module.prototype.require = function (specifier) {
  appendFileSync(log, `${specifier}\n`);
  return original.call(this, specifier);
};
register('./log-resolved.mjs', import.meta.url, { data: log });

const require = createRequire(import.meta.url);
await import('nestjs-distlimit');
require('nestjs-distlimit');
// What a CommonJS test runner takes; Node itself prefers the ES modules.
require(require.resolve('nestjs-distlimit/package.json').replace('package.json', 'dist/cjs/index.js'));
for (const file of Object.keys(require.cache)) appendFileSync(log, `${file}\n`);
