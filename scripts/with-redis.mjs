// with-redis.mjs [--own-servers] COMMAND…: runs tests with a Redis. That is REDIS_URL's, else that of a redis-server or
// valkey-server on the PATH, else one in Docker; on Debian or Ubuntu, as root, redis-server is installed where there is
// none of these. Elsewhere it is said how to get one.
//
// Specs that start, kill and freeze servers need the program. Without it they are left out, loudly; in CI, and with
// --own-servers, nothing may be left out, and only the program will do.
import { spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

const INSTALL = 'apt-get update && apt-get install -y --no-install-recommends redis-server';
const STARTS_SERVERS = /\b(startRedis|startCluster|startSentinels|HybridFleet)\b/;

const ownServers = process.argv[2] === '--own-servers';
const command = process.argv.slice(ownServers ? 3 : 2);
const mayLeaveOut = !ownServers && !process.env.CI;
const isRoot = process.getuid?.() === 0;

function runs(program, ...args) {
  return spawnSync(program, args).status === 0;
}

function hasProgram() {
  const { TEST_SERVER_PROGRAM } = process.env;
  const programs = TEST_SERVER_PROGRAM ? [TEST_SERVER_PROGRAM] : ['redis-server', 'valkey-server'];
  return programs.some((program) => runs(program, '--version'));
}

/** Installs the program. */
function install() {
  console.log('There is no Redis server for the tests: installing redis-server with apt …');
  const { status } = spawnSync('sh', ['-c', INSTALL], {
    stdio: 'inherit',
    // Only the program is wanted, not a service that starts with the machine.
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' },
  });
  if (status !== 0) process.exit(status ?? 1);
}

function howToGetOne() {
  return `on Debian or Ubuntu: ${isRoot ? '' : 'sudo '}sh -c '${INSTALL}'`;
}

/** A Redis in a container, or nothing where Docker or the image is not to be had. */
async function startContainer() {
  process.env.TESTCONTAINERS_RYUK_DISABLED = 'true';
  const { GenericContainer } = await import('testcontainers');
  const image = process.env.REDIS_IMAGE ?? 'redis:7-alpine';
  try {
    const container = await new GenericContainer(image).withExposedPorts(6379).start();
    console.log(`The tests use Redis in a container (${image}).`);
    return {
      url: `redis://${container.getHost()}:${container.getMappedPort(6379)}`,
      stop: () => container.stop(),
    };
  } catch {
    return undefined;
  }
}

/** Runs the command, and gives on to it what would end this process. */
async function run(env = {}) {
  const [program, ...args] = command;
  const child = spawn(program, args, { stdio: 'inherit', env: { ...process.env, ...env } });
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
  const status = await new Promise((resolve, reject) => {
    child.once('error', reject).once('exit', (code) => resolve(code ?? 1));
  });
  process.exitCode = status;
}

/** Runs the command without the specs that need the program. */
async function runSome(url) {
  const leftOut = readdirSync('test', { recursive: true, encoding: 'utf8' })
    .map((file) => `test/${file}`)
    .filter((file) => file.endsWith('.spec.ts') && STARTS_SERVERS.test(readFileSync(file, 'utf8')));
  await run({ REDIS_URL: url, SPECS_LEFT_OUT: leftOut.join() });
  const line = '!'.repeat(100);
  console.error(`${line}
NOT RUN, since they start, kill and freeze servers, and there is no redis-server or valkey-server:
  ${leftOut.join('\n  ')}
To run them too, ${howToGetOne()}
${line}`);
}

async function main() {
  if (hasProgram()) return run();
  if (mayLeaveOut) {
    if (process.env.REDIS_URL) return runSome(process.env.REDIS_URL);
    const container = await startContainer();
    if (container !== undefined) {
      try {
        return await runSome(container.url);
      } finally {
        await container.stop();
      }
    }
  }
  if (isRoot && runs('apt-get', '--version')) {
    install();
    return run();
  }
  const what = mayLeaveOut ? 'REDIS_URL, Docker, or a redis-server' : 'a redis-server';
  console.error(`The tests need ${what} or valkey-server; ${howToGetOne()}`);
  process.exitCode = 1;
}

await main();
