import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';

/** `--quick`: a short run that shows that it works, and judges nothing. `--json FILE`: the results as JSON. */
export function parseArguments() {
  const { values } = parseArgs({ options: { quick: { type: 'boolean' }, json: { type: 'string' } } });
  return { quick: values.quick === true, json: values.json };
}

/** What a figure depends on. */
export function machine() {
  const lock = JSON.parse(readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8'));
  const rivals = [
    'rate-limiter-flexible',
    'rate-limit-redis',
    '@nest-lab/throttler-storage-redis',
    'express-rate-limit',
    '@nestjs/throttler',
    '@nestjs/core',
    'autocannon',
  ];
  return {
    node: process.version,
    cpu: cpus()[0]?.model,
    cores: cpus().length,
    versions: Object.fromEntries(
      rivals.map((name) => [name, lock.packages[`node_modules/${name}`]?.version]),
    ),
  };
}

export function writeJson(file, results) {
  if (file !== undefined) writeFileSync(file, `${JSON.stringify(results, null, 2)}\n`);
}
