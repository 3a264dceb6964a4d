// One of several instances that share limits. It is told what to do by messages, one at a time, and answers each:
// open a hybrid driver, send traffic, block the event loop, report what callers saw, close.
import { setImmediate } from 'node:timers/promises';

const library = process.argv[2];
const { limiterBuilder } = await import(library);
const { HybridDriver } = await import(new URL('./drivers/hybrid/hybrid-driver.js', library).href);

const TICK_MS = 5;

/** How long the event loop has been late, all in all. */
const lag = { total: 0, last: performance.now() };
function tick() {
  const now = performance.now();
  lag.total += Math.max(0, now - lag.last - TICK_MS);
  lag.last = now;
  setTimeout(tick, TICK_MS);
}
tick();
function lagSoFar() {
  return lag.total + Math.max(0, performance.now() - lag.last - TICK_MS);
}

let driver;
let deadlineMs;
const limiters = new Map();
const breaker = [];
const report = { requests: 0, errors: [], late: [], slowestMs: 0, windows: {}, servedBy: {}, breaker };
const timers = [];
const pending = new Set();

async function open({ redis, prefix, hybrid, policies }) {
  deadlineMs = hybrid.timeoutMs ?? 100;
  const onBreakerChange = ({ current, reason }) => breaker.push({ at: Date.now(), current, reason });
  driver = new HybridDriver({ redis, prefix, ...hybrid, onBreakerChange });
  for (const [name, { limit, window, algorithm }] of Object.entries(policies)) {
    const builder = limiterBuilder().driver(driver).name(name);
    limiters.set(name, builder.limit(limit).window(window).algorithm(algorithm).build());
  }
  await driver.started;
  return driver.status();
}

async function request(policy, subject) {
  const limiter = limiters.get(policy);
  const lagBefore = lagSoFar();
  const sentAt = performance.now();
  try {
    const { allowed, resetAfterMs, servedBy } = await limiter.consume(subject);
    const receivedAt = performance.now();
    const took = receivedAt - sentAt;
    const allowedMs = deadlineMs + 20 + lagSoFar() - lagBefore;
    report.requests++;
    report.slowestMs = Math.max(report.slowestMs, took);
    report.servedBy[servedBy] = (report.servedBy[servedBy] ?? 0) + 1;
    if (took > allowedMs) report.late.push({ took, allowedMs, servedBy });
    if (!allowed) return;
    // A fixed window ends when the whole quota is back: that tells which one it was, whenever the answer came.
    const windowMs = limiter.policy.windowMs;
    const middle = performance.timeOrigin + (sentAt + receivedAt) / 2;
    const window = Math.round((middle + resetAfterMs) / windowMs) - 1;
    const counts = (report.windows[`${policy} ${subject}`] ??= {});
    counts[window] = (counts[window] ?? 0) + 1;
  } catch (error) {
    report.errors.push(String(error));
  }
}

function traffic(streams) {
  for (const { policy, subject, everyMs } of streams) {
    timers.push(
      setInterval(() => {
        const call = request(policy, subject);
        pending.add(call);
        void call.finally(() => pending.delete(call));
      }, everyMs),
    );
  }
  return 'sending';
}

/** While it is blocked a call waits for its answer, which Redis has long given. */
async function block({ ms, policy, subject }) {
  const call = request(policy, subject);
  // What the call awaits before it is sent, in the immediate that comes before this one.
  for (let i = 0; i < 10; i++) await undefined;
  await setImmediate();
  const end = performance.now() + ms;
  while (performance.now() < end);
  await call;
  return 'blocked';
}

async function finish() {
  for (const timer of timers) clearInterval(timer);
  await Promise.all(pending);
  return { ...report, status: driver.status() };
}

const commands = { open, traffic, block, finish, status: () => driver.status(), close: () => driver.close() };

process.on('message', async ({ command, given }) => {
  try {
    process.send({ answer: await commands[command](given) });
  } catch (error) {
    process.send({ error: String(error) });
  }
});
