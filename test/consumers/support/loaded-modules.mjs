// Loads the package in every form it has, and prints each specifier that was asked for meanwhile.
import { writeSync } from 'node:fs';
import Module, { createRequire, register } from 'node:module';

const original = Module.prototype.require;
Module.prototype.require = function (specifier) {
  writeSync(1, `${specifier}\n`);
  return original.call(this, specifier);
};
register('./print-resolved.mjs', import.meta.url);

const require = createRequire(import.meta.url);
await import('nestjs-distlimit');
require('nestjs-distlimit');
// What a CommonJS test runner takes; Node itself prefers the ES modules.
require(require.resolve('nestjs-distlimit/package.json').replace('package.json', 'dist/cjs/index.js'));
for (const file of Object.keys(require.cache)) writeSync(1, `${file}\n`);
