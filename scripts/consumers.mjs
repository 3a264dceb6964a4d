// Installs the packed package into real applications, the way a user would, and checks what they see.
//   --tarball FILE   take this package instead of packing one
//   --keep           leave the applications where they were installed
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';

const CONSUMERS = [
  { title: 'Nest 11, CommonJS, Express', directory: 'nest11-cjs-express' },
  { title: 'Nest 12, ES modules, Fastify', directory: 'nest12-esm-fastify' },
  { title: 'Nest 12, compiled to CommonJS, Express', directory: 'nest12-cjs-express' },
];
const OPTIONAL_PEERS = [
  'ioredis',
  'prom-client',
  '@willsoto/nestjs-prometheus',
  '@opentelemetry/api',
  '@nestjs/terminus',
  '@nestjs/throttler',
];
const LIMIT = 3;
const COMMAND_TIMEOUT_MS = 300_000;
const START_TIMEOUT_MS = 30_000;

const { values: flags } = parseArgs({ options: { tarball: { type: 'string' }, keep: { type: 'boolean' } } });
const root = fileURLToPath(new URL('..', import.meta.url));
const workplace = mkdtempSync(join(tmpdir(), 'distlimit-consumers-'));
const count = { passed: 0, failed: 0 };

/** Runs one check and prints its line. Answers whether it passed. */
async function check(name, body) {
  try {
    await body();
    count.passed += 1;
    console.log(`  ok    ${name}`);
    return true;
  } catch (error) {
    count.failed += 1;
    console.log(`  FAIL  ${name}`);
    console.log(String(error.stderr || error.stdout || error.message || error).replaceAll(/^/gm, '        '));
    return false;
  }
}

async function run(cwd, command, ...args) {
  const { stdout, stderr } = await promisify(execFile)(command, args, {
    cwd,
    timeout: COMMAND_TIMEOUT_MS,
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout + stderr;
}

async function pack() {
  await run(root, 'npm', 'pack', '--silent', '--pack-destination', workplace);
  return join(
    workplace,
    readdirSync(workplace).find((name) => name.endsWith('.tgz')),
  );
}

/** Starts the built application. Answers its URL and how to stop it. */
function start(cwd) {
  const child = spawn(process.execPath, ['dist/main.js'], { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  const output = [];
  const stop = () =>
    new Promise((done) => {
      if (child.exitCode !== null || child.signalCode !== null) return done();
      child.once('exit', done);
      child.kill('SIGKILL');
    });
  return new Promise((done, fail) => {
    const giveUp = async (why) => {
      clearTimeout(timer);
      await stop();
      fail(new Error(`${why}\n${output.join('\n')}`));
    };
    const timer = setTimeout(() => giveUp(`not listening after ${START_TIMEOUT_MS} ms`), START_TIMEOUT_MS);
    child.once('exit', (code) => giveUp(`exited with ${code}`));
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        output.push(line);
        const url = /listening on (\S+)/.exec(line)?.[1];
        if (!url) return;
        clearTimeout(timer);
        child.removeAllListeners('exit');
        done({ url, stop });
      });
    }
  });
}

async function checkResponses(url) {
  const responses = [];
  for (let request = 0; request <= LIMIT; request += 1) responses.push(await fetch(`${url}/cats`));
  const denied = responses.pop();

  await check(`${LIMIT} requests are answered with 200`, () => {
    assert.deepEqual(
      responses.map(({ status }) => status),
      Array.from({ length: LIMIT }, () => 200),
    );
  });
  for (const header of ['RateLimit', 'RateLimit-Policy']) {
    await check(`each answer has ${header}`, () => {
      for (const { headers } of [...responses, denied])
        assert.match(headers.get(header) ?? '(missing)', /^".+";/);
    });
  }
  await check('the next one is answered with 429', () => assert.equal(denied.status, 429));
  await check('Retry-After is in whole seconds', () =>
    assert.match(denied.headers.get('retry-after') ?? '(missing)', /^[1-9]\d*$/),
  );
  await check('the denial is problem details', async () => {
    assert.equal(denied.headers.get('content-type'), 'application/problem+json; charset=utf-8');
    assert.equal((await denied.json()).status, 429);
  });
  await check('the denial is not stored', () =>
    assert.equal(denied.headers.get('cache-control'), 'no-store'),
  );
}

async function checkConsumer(directory, tarball) {
  const cwd = join(workplace, directory);
  cpSync(join(root, 'test/consumers', directory), cwd, { recursive: true });
  cpSync(join(root, 'test/consumers/support'), join(cwd, 'support'), { recursive: true });

  const installed = await check('installs', () =>
    run(cwd, 'npm', 'install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error', tarball),
  );
  if (!installed) return;

  await check('gets no optional peer with it', () => {
    const found = OPTIONAL_PEERS.filter((peer) => existsSync(join(cwd, 'node_modules', peer)));
    assert.deepEqual(found, []);
  });
  await check('loads no optional peer', async () => {
    const log = join(cwd, 'loaded-modules.log');
    await run(cwd, process.execPath, 'support/loaded-modules.mjs', log);
    const asked = readFileSync(log, 'utf8').split('\n');
    assert.ok(asked.includes('nestjs-distlimit') && asked.includes('@nestjs/common'), 'nothing was recorded');
    const loaded = OPTIONAL_PEERS.filter((peer) =>
      asked.some(
        (name) => name === peer || name.startsWith(`${peer}/`) || name.includes(`/node_modules/${peer}/`),
      ),
    );
    assert.deepEqual(loaded, []);
  });
  await check('require() and import() give one class', () =>
    run(cwd, process.execPath, 'support/one-class.mjs'),
  );
  await check('reads a policy file', () => run(cwd, process.execPath, 'support/policy-file.mjs'));
  await check('says which package an entry point misses', () =>
    run(cwd, process.execPath, 'support/missing-peers.mjs'),
  );
  await check('passes its own jest', () => run(cwd, 'npm', 'test'));

  if (!(await check('compiles', () => run(cwd, 'npm', 'run', 'build')))) return;
  let server;
  const started = await check('starts', async () => {
    server = await start(cwd);
  });
  if (!started) return;
  try {
    await checkResponses(server.url);
  } finally {
    await server.stop();
  }
}

try {
  let tarball = flags.tarball && resolve(flags.tarball);
  if (!tarball) {
    console.log('The package');
    await check('packs', async () => {
      tarball = await pack();
    });
  }
  if (tarball) {
    for (const { title, directory } of CONSUMERS) {
      console.log(title);
      await checkConsumer(directory, tarball);
    }
  }
} finally {
  if (flags.keep) console.log(`kept in ${workplace}`);
  else rmSync(workplace, { recursive: true, force: true });
}
console.log(`${count.passed} passed, ${count.failed} failed`);
process.exitCode = count.failed > 0 ? 1 : 0;
