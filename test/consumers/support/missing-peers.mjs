// An entry point whose package is not installed says which one it is, through import and through require.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const NEEDS = {
  opentelemetry: '@opentelemetry/api',
  prometheus: /@willsoto\/nestjs-prometheus|prom-client/,
  terminus: '@nestjs/terminus',
};

for (const [entry, peer] of Object.entries(NEEDS)) {
  const names = new RegExp(`Cannot find (module|package) '(${peer.source ?? peer})'`);
  await assert.rejects(() => import(`nestjs-distlimit/${entry}`), { message: names });
  assert.throws(() => require(`nestjs-distlimit/${entry}`), { message: names });
}
// Takes nothing of the throttler's but types.
assert.equal(typeof (await import('nestjs-distlimit/throttler')).DistlimitThrottlerStorage, 'function');
