// In one process the package must be one, however it is loaded: else Nest knows two of each class.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const required = createRequire(import.meta.url)('nestjs-distlimit');
const imported = await import('nestjs-distlimit');

assert.equal(typeof required.RateLimiterService, 'function');
assert.equal(required.RateLimiterService, imported.RateLimiterService);
