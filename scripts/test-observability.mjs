// Runs the specs that need Prometheus and promtool (Debian's package `prometheus`), or says loudly why they were not
// run. As root on Debian or Ubuntu what is missing is installed. In CI nothing may be left out.
import { spawnSync } from 'node:child_process';

const INSTALL = 'apt-get update && apt-get install -y --no-install-recommends prometheus';

function runs(program, ...args) {
  return spawnSync(program, args).status === 0;
}

function hasPrograms() {
  return runs('prometheus', '--version') && runs('promtool', '--version');
}

if (!hasPrograms() && process.getuid?.() === 0 && runs('apt-get', '--version')) {
  console.log('There is no Prometheus for the tests: installing it with apt …');
  spawnSync('sh', ['-c', INSTALL], {
    stdio: 'inherit',
    // Only the programs are wanted, not a service that starts with the machine.
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' },
  });
}
if (!hasPrograms()) {
  const line = '!'.repeat(100);
  console.error(`${line}
NO OBSERVABILITY TEST WAS RUN: there is no prometheus and promtool on the PATH.
On Debian or Ubuntu: sudo sh -c '${INSTALL}'; elsewhere: https://prometheus.io/download/
${line}`);
  process.exit(process.env.CI ? 1 : 0);
}

const { status } = spawnSync(
  process.execPath,
  [
    ...['scripts/with-redis.mjs', '--own-servers', process.execPath],
    ...[
      '--experimental-vm-modules',
      '--disable-warning=ExperimentalWarning',
      'node_modules/jest/bin/jest.js',
    ],
    ...['--selectProjects', 'observability', '--runInBand', ...process.argv.slice(2)],
  ],
  { stdio: 'inherit' },
);
process.exit(status ?? 1);
