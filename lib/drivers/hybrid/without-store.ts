import type { Charge, Decision } from '../../core/driver.js';
import { unanswered } from '../../core/unavailable.js';
import type { LocalFallback } from './local-fallback.js';

/**
 * What a group is answered while Redis is away. Mostly all of it falls back; where policies want different things, the
 * strictest decides: nothing is taken where one throws or denies. Policies in shadow mode have no say.
 * @throws the error where a policy wants that, and where none falls back
 */
export function withoutStore(
  group: readonly Charge[],
  local: LocalFallback,
  error: unknown,
): readonly Decision[] {
  if (group.every(fallsBack)) return local.decide(group);
  const wanted = (answer: string) =>
    group.some(({ policy }) => policy.mode === 'enforce' && policy.onUnavailable === answer);
  if (wanted('throw') || !group.some(fallsBack)) throw error;
  const falling = group.filter(fallsBack);
  const decisions = wanted('deny')
    ? falling.map((charge) => ({ ...local.peek(charge), receipt: undefined }))
    : local.decide(falling);
  let next = 0;
  return group.map((charge) => {
    if (fallsBack(charge)) return decisions[next++]!;
    return { ...unanswered(charge, charge.policy.onUnavailable === 'allow'), storeFailed: true };
  });
}

function fallsBack({ policy }: Charge): boolean {
  return policy.onUnavailable === 'fallback';
}
