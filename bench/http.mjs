// Requests a second and processor time a request of a guarded handler: unguarded, guarded by this library, guarded by
// @nestjs/throttler. All servers stand ready together; each round puts every one under load for a moment, in turn.
import autocannon from 'autocannon';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parseArguments, writeJson } from './support/report.mjs';
import { median } from './support/statistics.mjs';

const SERVER = fileURLToPath(new URL('children/http-server.mjs', import.meta.url));
const ADAPTERS = ['fastify', 'express'];
const GUARDS = ['unguarded', 'headers', 'distlimit', 'throttler'];
const CLIENTS = 1_000;
const CONNECTIONS = 32;

const options = parseArguments();
const { quick } = options;
const rounds = quick ? 1 : 21;
const seconds = quick ? 1 : 2;

async function start(adapter, guard) {
  const child = fork(SERVER, [adapter, guard]);
  const [{ port }] = await once(child, 'message');
  return { adapter, guard, child, port, perSecond: [], cpuUs: [] };
}

/** Processor time and requests of the server since it was last asked. */
async function usage({ child }) {
  const answer = once(child, 'message');
  child.send('usage');
  const [spent] = await answer;
  return spent;
}

async function load(server) {
  await usage(server);
  let next = 0;
  const result = await autocannon({
    url: `http://127.0.0.1:${server.port}/ping`,
    connections: CONNECTIONS,
    duration: seconds,
    requests: [
      {
        setupRequest(request) {
          next = (next + 1) % CLIENTS;
          return {
            ...request,
            headers: { ...request.headers, 'x-forwarded-for': `203.0.${next >> 8}.${next & 255}` },
          };
        },
      },
    ],
  });
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${server.adapter} ${server.guard}: ${result.non2xx} refused`);
  const { cpuMs, requests } = await usage(server);
  return { perSecond: requests / result.duration, cpuUs: (cpuMs * 1_000) / requests };
}

const servers = [];
for (const adapter of ADAPTERS) for (const guard of GUARDS) servers.push(await start(adapter, guard));
try {
  for (const server of servers) await load(server);
  for (let round = 0; round < rounds; round++) {
    for (const server of servers.toSorted(() => Math.random() - 0.5)) {
      const { perSecond, cpuUs } = await load(server);
      server.perSecond.push(perSecond);
      server.cpuUs.push(cpuUs);
    }
  }
} finally {
  for (const { child } of servers) child.kill();
}

const results = ADAPTERS.map((adapter) => {
  const of = (guard) => servers.find((server) => server.adapter === adapter && server.guard === guard);
  const bare = of('unguarded');
  const addedUs = (guard) => median(of(guard).cpuUs.map((us, round) => us - bare.cpuUs[round]));
  return {
    adapter,
    requestsPerSecond: Object.fromEntries(
      GUARDS.map((guard) => [guard, Math.round(median(of(guard).perSecond))]),
    ),
    cpuUsPerRequest: Object.fromEntries(GUARDS.map((guard) => [guard, round1(median(of(guard).cpuUs))])),
    addedUs: Object.fromEntries(GUARDS.slice(1).map((guard) => [guard, round1(addedUs(guard))])),
    requestsOfUnguarded: ratio(
      median(of('distlimit').perSecond.map((n, round) => n / bare.perSecond[round])),
    ),
    addedOfThrottler: ratio(addedUs('distlimit') / addedUs('throttler')),
  };
});

function round1(value) {
  return Math.round(value * 10) / 10;
}

function ratio(value) {
  return Math.round(value * 100) / 100;
}

for (const { adapter, ...figures } of results) {
  console.log(
    `\n${adapter}, ${CLIENTS} client addresses, ${CONNECTIONS} connections, median of ${rounds} rounds`,
  );
  console.table(
    Object.fromEntries(
      GUARDS.map((guard) => [
        guard,
        { 'requests/s': figures.requestsPerSecond[guard], 'cpu µs/request': figures.cpuUsPerRequest[guard] },
      ]),
    ),
  );
  console.log(
    `guarded: ${figures.requestsOfUnguarded} × the unguarded requests a second; adds ${figures.addedUs.distlimit} µs a ` +
      `request, ${figures.addedOfThrottler} × what the throttler adds (${figures.addedUs.throttler} µs)`,
  );
}
await writeJson(options, 'http', { rounds, seconds, results });
