import { ALGORITHMS } from '../../../lib/algorithms/index.js';
import type { Counter } from '../../../lib/core/driver.js';
import { completePolicy } from '../../../lib/core/policy-completion.js';
import type { PolicyOptions } from '../../../lib/core/policy.js';

/** A clock whose time a test sets, and whose timers it runs. */
export function heldClock(now = 1_700_000_000_000) {
  const timers: { at: number; callback: () => void }[] = [];
  const clock = {
    time: now,
    now: () => clock.time,
    setTimer(callback: () => void, delayMs: number) {
      const timer = { at: clock.time + delayMs, callback };
      timers.push(timer);
      return () => void timers.splice(timers.indexOf(timer) >>> 0, 1);
    },
    advance(ms: number) {
      clock.time += ms;
      for (const timer of timers.filter(({ at }) => at <= clock.time)) {
        timers.splice(timers.indexOf(timer), 1);
        timer.callback();
      }
    },
  };
  return clock;
}

function policyOf(options: Partial<PolicyOptions> = {}, name = 'p') {
  const all = { limit: 100, window: 60_000, algorithm: 'token-bucket', ...options } as PolicyOptions;
  return completePolicy(name, all, 'policy', { algorithms: ALGORITHMS, report: () => {} });
}

export function chargeOf(subject: string, options?: Partial<PolicyOptions>, name?: string) {
  const policy = policyOf(options, name);
  return { policy, quota: policy, subject, cost: 1 } satisfies Counter & { cost: number };
}

/** A published 32-bit FNV-1a step over ASCII text, kept apart from the code under test. */
export function referenceFnv(text: string, start = 0x811c9dc5): number {
  let hash = BigInt(start);
  for (const byte of Buffer.from(text, 'utf8')) hash = ((hash ^ BigInt(byte)) * 0x01000193n) & 0xffff_ffffn;
  return Number(hash);
}

/** Distinct texts of one FNV-1a value from the published basis: `2 ** blocks`, by two ways through every block. */
export function collidingTexts(blocks: number): string[] {
  let texts = [''];
  let state = 0x811c9dc5;
  for (let block = 0; block < blocks; block++) {
    const [one, other, next] = collidingPair(state);
    texts = texts.flatMap((text) => [text + one, text + other]);
    state = next;
  }
  return texts;
}

/** Two blocks of eight letters that lead from a state to one and the same next. */
function collidingPair(state: number): [string, string, number] {
  const seen = new Map<number, string>();
  for (let i = 0; ; i++) {
    const block = (0x10000000 + ((i * 0x9e3779b1) >>> 4)).toString(16).padStart(8, 'a').slice(-8);
    let hash = state;
    for (let c = 0; c < block.length; c++) hash = Math.imul(hash ^ block.charCodeAt(c), 0x01000193);
    const earlier = seen.get(hash);
    if (earlier !== undefined && earlier !== block) return [earlier, block, hash];
    seen.set(hash, block);
  }
}
