import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/**
 * Nanoseconds a call, per contestant and round, of the program `bench/children/<child>.mjs`. Each contestant has a
 * process of its own, so that neither its heap nor what the compiler learned from the others decides for it. All stand
 * ready together, and every round lets each run one short chunk, in random order: what else the machine does falls on
 * all alike.
 */
export async function race(child, names, keyCount, { rounds, chunkMs }) {
  const program = fileURLToPath(new URL(`../children/${child}.mjs`, import.meta.url));
  const runners = names.map((name) => startRunner(program, name, keyCount));
  try {
    await Promise.all(runners.map(({ ready }) => ready));
    for (const runner of runners) await warmUp(runner, chunkMs);
    for (let round = 0; round < rounds; round++) {
      for (const runner of shuffled(runners)) runner.samples.push(await runChunk(runner, runner.calls));
    }
    return new Map(runners.map(({ name, samples }) => [name, samples]));
  } finally {
    for (const { child } of runners) child.kill();
  }
}

function startRunner(program, name, keyCount) {
  const child = fork(program, [name, String(keyCount)], { execArgv: ['--max-old-space-size=6000'] });
  const failed = once(child, 'exit').then(([code]) => {
    if (code) throw new Error(`the process of '${name}' ended with ${code}`);
  });
  const answer = async () => (await Promise.race([once(child, 'message'), failed]))[0];
  return { name, child, answer, ready: answer(), samples: [], calls: 0 };
}

/** Runs until the compiler has settled, and finds how many calls a chunk takes. */
async function warmUp(runner, chunkMs) {
  let calls = 1_000;
  for (let i = 0; i < 6; i++) {
    const ns = await runChunk(runner, calls);
    calls = Math.max(1_000, Math.round((chunkMs * 1e6) / ns));
  }
  runner.calls = calls;
}

async function runChunk({ child, answer }, calls) {
  const answered = answer();
  child.send({ calls });
  const { ns } = await answered;
  return ns / calls;
}

function shuffled(list) {
  return list
    .map((item) => ({ item, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
