// Runs every benchmark, passing the arguments on: npm run bench -- --quick
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

const BENCHMARKS = ['memory', 'http', 'redis', 'observers', 'outage'];

for (const script of ['scripts/build.mjs', ...BENCHMARKS.map((name) => `bench/${name}.mjs`)]) {
  const args = script.startsWith('bench/') ? process.argv.slice(2) : [];
  const { status } = spawnSync(process.execPath, [script, ...args], { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
