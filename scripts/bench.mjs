// Runs every benchmark, passing the arguments on: npm run bench -- --quick
// With --save each writes its results to bench/results, which docs/benchmarks.md is made of.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));

const BENCHMARKS = ['memory', 'http', 'redis', 'observers', 'outage'];

const { values } = parseArgs({ options: { quick: { type: 'boolean' }, save: { type: 'boolean' } } });

function run(script, args = []) {
  const { status } = spawnSync(process.execPath, [script, ...args], { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}

run('scripts/build.mjs');
for (const name of BENCHMARKS) {
  run(`bench/${name}.mjs`, [
    ...(values.quick ? ['--quick'] : []),
    ...(values.save ? ['--json', `bench/results/${name}.json`] : []),
  ]);
}
