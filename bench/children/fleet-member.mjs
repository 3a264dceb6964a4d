// One process of a fleet: `fleet-member.mjs <limiter> <url> <plan as JSON>`. It says when it is ready; told when to
// start, it sends its part of the traffic and then reports what callers saw, second by second.
import { setTimeout as sleep } from 'node:timers/promises';
import { FLEET_LIMITERS } from '../support/fleet-limiters.mjs';

const [name, url, plan] = process.argv.slice(2);
const { seconds, subjects, callsPerSecond, ...quota } = JSON.parse(plan);
const TICK_MS = 5;
/** How long answers are waited for when no more calls are sent. */
const PATIENCE_MS = 3_000;

const consume = await FLEET_LIMITERS[name](url, quota);

/** By second of the answer: what each subject was let through, and errors. By second of the call: how long it took. */
const admitted = Array.from({ length: seconds }, () => new Array(subjects).fill(0));
const errors = new Array(seconds).fill(0);
const times = Array.from({ length: seconds }, () => []);
const waiting = { calls: 0 };

const now = () => performance.timeOrigin + performance.now();

async function ask(subject, start) {
  const sentAt = now();
  const secondOf = (at) => Math.min(seconds - 1, Math.floor((at - start) / 1_000));
  waiting.calls++;
  try {
    if (await consume(`subject-${subject}`)) admitted[secondOf(now())][subject]++;
  } catch {
    errors[secondOf(now())]++;
  }
  waiting.calls--;
  times[secondOf(sentAt)].push(Math.round((now() - sentAt) * 10) / 10);
}

async function send(start, delayMs) {
  const end = start + seconds * 1_000;
  const first = start + delayMs;
  await sleep(first - now());
  let sent = 0;
  for (; now() < end; await sleep(TICK_MS)) {
    const due = ((now() - first) * callsPerSecond) / 1_000;
    for (; sent < due; sent++) for (let subject = 0; subject < subjects; subject++) void ask(subject, start);
  }
  const deadline = now() + PATIENCE_MS;
  while (waiting.calls > 0 && now() < deadline) await sleep(TICK_MS);
}

process.on('message', async ({ start, delayMs }) => {
  await send(start, delayMs);
  process.send({ admitted, errors, times, unanswered: waiting.calls });
});
process.send({ ready: true });
