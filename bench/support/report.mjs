import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, release, type } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { format, resolveConfig } from 'prettier';

/** `--quick`: a short run that shows that it works, and judges nothing. `--json FILE`: the results as JSON. */
export function parseArguments() {
  const { values } = parseArgs({ options: { quick: { type: 'boolean' }, json: { type: 'string' } } });
  return { quick: values.quick === true, json: values.json };
}

/** What a figure depends on. */
function machine() {
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
    os: `${type()} ${release()}`,
    versions: Object.fromEntries(
      rivals.map((name) => [name, lock.packages[`node_modules/${name}`]?.version]),
    ),
  };
}

/** The results of one benchmark, and what they depend on. Formatted: some are committed. */
export async function writeJson({ quick, json }, benchmark, results) {
  if (json === undefined) return;
  const date = new Date().toISOString().slice(0, 10);
  const text = JSON.stringify({ benchmark, date, quick, machine: machine(), ...results });
  writeFileSync(
    json,
    await format(text, { ...(await resolveConfig(fileURLToPath(import.meta.url))), parser: 'json' }),
  );
}
