// The Redis tests need a server: REDIS_URL, or redis-server or valkey-server on the PATH. On Debian or Ubuntu, as root,
// one is installed; elsewhere it is said how to get one.
import { spawnSync } from 'node:child_process';

const present =
  Boolean(process.env.REDIS_URL) ||
  ['redis-server', 'valkey-server'].some((name) => spawnSync(name, ['--version']).status === 0);

if (!present) {
  const command = 'apt-get update && apt-get install -y --no-install-recommends redis-server';
  const isRoot = process.getuid?.() === 0;
  if (!isRoot || spawnSync('apt-get', ['--version']).status !== 0) {
    console.error(
      `The tests need a Redis server. On Debian or Ubuntu: ${isRoot ? '' : 'sudo '}sh -c '${command}'`,
    );
    process.exit(1);
  }
  console.log('There is no Redis server for the tests: installing redis-server with apt …');
  const { status } = spawnSync('sh', ['-c', command], {
    stdio: 'inherit',
    // Only the program is wanted, not a service that starts with the machine.
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' },
  });
  if (status !== 0) process.exit(status ?? 1);
}
