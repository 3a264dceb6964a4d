import type { Receipt } from '../core/algorithm.js';
import type { Charge, Decision, MaybePromise } from '../core/driver.js';

/** What a group that no store can decide as a whole needs done with its parts. */
export interface PartCommands {
  decide(part: readonly Charge[]): Promise<{ passed: boolean; decisions: readonly Decision[] }>;
  refund(charge: Charge, receipt: Receipt): MaybePromise<void>;
  peek(charge: Charge): MaybePromise<Decision>;
}

/** What of a group is in one place, and where in the group its charges stand. */
interface Part {
  readonly charges: Charge[];
  readonly places: number[];
}

/**
 * Decides a group whose counters are in several places. The parts are consumed at the same time; where one is denied, or
 * fails, what the others took is given back by its receipt. For that moment others may see it as taken.
 */
export async function decideInParts(
  group: readonly Charge[],
  placeOf: (charge: Charge) => unknown,
  commands: PartCommands,
): Promise<readonly Decision[]> {
  const parts = partsOf(group, placeOf);
  const settled = await Promise.allSettled(parts.map(({ charges }) => commands.decide(charges)));
  const passed = settled.every((part) => part.status === 'fulfilled' && part.value.passed);
  const decisions: Decision[] = [];
  const undone: Promise<void>[] = [];
  for (const [p, part] of settled.entries()) {
    if (part.status === 'rejected') continue;
    const { charges, places } = parts[p]!;
    for (const [i, decision] of part.value.decisions.entries()) {
      const place = places[i]!;
      decisions[place] = decision;
      const { receipt } = decision;
      if (passed || receipt === undefined) continue;
      const charge = charges[i]!;
      undone.push(
        giveBack(charge, receipt, commands).then(({ remaining, resetAfterMs }) => {
          decisions[place] = { ...decision, remaining, resetAfterMs };
          return undefined;
        }),
      );
    }
  }
  await Promise.allSettled(undone);
  for (const part of settled) if (part.status === 'rejected') throw part.reason;
  // One that could not be given back stays charged, which errs to denial; nobody may give it back twice.
  return passed ? decisions : decisions.map((decision) => ({ ...decision, receipt: undefined }));
}

/** What is left without the charge: both commands travel together, in this order. */
async function giveBack(charge: Charge, receipt: Receipt, commands: PartCommands): Promise<Decision> {
  const [, left] = await Promise.all([commands.refund(charge, receipt), commands.peek(charge)]);
  return left;
}

function partsOf(group: readonly Charge[], placeOf: (charge: Charge) => unknown): Part[] {
  const parts = new Map<unknown, Part>();
  for (const [place, charge] of group.entries()) {
    const key = placeOf(charge);
    let part = parts.get(key);
    if (part === undefined) parts.set(key, (part = { charges: [], places: [] }));
    part.charges.push(charge);
    part.places.push(place);
  }
  return [...parts.values()];
}
