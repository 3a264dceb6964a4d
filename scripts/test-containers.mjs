// Runs the specs that start Redis in containers, or says loudly why they were not run. In CI that is a failure.
import { spawnSync } from 'node:child_process';
import { getContainerRuntimeClient } from 'testcontainers';

try {
  await getContainerRuntimeClient();
} catch (error) {
  const line = '!'.repeat(100);
  console.error(`${line}
NO CONTAINER TEST WAS RUN: there is no Docker that answers (${error.message}).
Start Docker and try again, or as root on Debian or Ubuntu: scripts/with-docker.sh npm run test:containers
${line}`);
  process.exit(process.env.CI ? 1 : 0);
}

const { status } = spawnSync(
  process.execPath,
  [
    ...[
      '--experimental-vm-modules',
      '--disable-warning=ExperimentalWarning',
      'node_modules/jest/bin/jest.js',
    ],
    ...['--selectProjects', 'containers', '--runInBand', ...process.argv.slice(2)],
  ],
  // The specs stop what they start: the container that would look after that can't be pulled everywhere.
  { stdio: 'inherit', env: { ...process.env, TESTCONTAINERS_RYUK_DISABLED: 'true' } },
);
process.exit(status ?? 1);
