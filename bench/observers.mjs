// What observers add to a decision in memory through the guard.
import { OBSERVERS } from './support/observers.mjs';
import { race } from './support/race.mjs';
import { parseArguments, writeJson } from './support/report.mjs';
import { median } from './support/statistics.mjs';

const options = parseArguments();
const { quick } = options;
const CLIENTS = 1_000;
const PACE = quick ? { rounds: 2, chunkMs: 5 } : { rounds: 8, chunkMs: 40 };
/** Two processes of the same code may differ for as long as they live: each contestant has several, one after another. */
const PROCESSES = quick ? 1 : 10;

const names = Object.keys(OBSERVERS);
const [none] = names;
const samples = new Map(names.map((name) => [name, []]));
for (let i = 0; i < PROCESSES; i++) {
  const raced = await race('guarded', names, CLIENTS, PACE);
  for (const name of names) samples.get(name).push(...raced.get(name));
}

const results = Object.fromEntries(
  names.map((name) => [
    name,
    {
      'ns/decision': Math.round(median(samples.get(name))),
      'of none': Number(median(samples.get(name).map((ns, i) => ns / samples.get(none)[i])).toFixed(3)),
    },
  ]),
);
console.log(
  `\nA decision through the guard, ${CLIENTS} clients, median of ${PROCESSES * PACE.rounds} rounds`,
);
console.table(results);
await writeJson(options, 'observers', { pace: { ...PACE, processes: PROCESSES }, clients: CLIENTS, results });
