// What a policy file needs comes with the package.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { fileSource } from 'nestjs-distlimit';

writeFileSync('rate-limits.yaml', 'policies:\n  api: { limit: 5, window: 1m }\n');
const opened = await fileSource('rate-limits.yaml').open({ prefix: 'p', changed() {}, report() {} });
assert.deepEqual(opened.policies, { api: { limit: 5, window: '1m' } });
await opened.close();
