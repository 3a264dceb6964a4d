// A process of its own for one contestant: `contestant.mjs <name> <keys>`. The parent says when to run how much.
import { openContestant } from '../support/contestants.mjs';
import { premadeKeys, randomVisits } from '../support/keys.mjs';

const [name, count] = process.argv.slice(2);
const keys = premadeKeys(Number(count));
const { sync, call } = await openContestant(name);

async function run(visits) {
  const start = process.hrtime.bigint();
  if (sync) for (let i = 0; i < visits.length; i++) call(keys[visits[i]]);
  else for (let i = 0; i < visits.length; i++) await call(keys[visits[i]]);
  return Number(process.hrtime.bigint() - start);
}

// Every key is there before anything is timed.
await run(Uint32Array.from(keys.keys()));

process.on('message', async ({ calls }) => {
  const visits = randomVisits(calls, keys.length);
  process.send({ ns: await run(visits) });
});
process.send({ ready: true });
