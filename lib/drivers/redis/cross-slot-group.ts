import type { Receipt } from '../../core/algorithm.js';
import type { Charge, Decision } from '../../core/driver.js';
import type { DecidedGroup } from './operations.js';
import { slotOf } from './turn-batcher.js';

/** What a group that is spread over slots needs done with its parts. */
interface SlotCommands {
  decide(part: readonly Charge[]): Promise<DecidedGroup>;
  refund(charge: Charge, receipt: Receipt): Promise<void>;
  peek(charge: Charge): Promise<Decision>;
}

/** One slot's share of a group, and where in the group its charges stand. */
interface Part {
  readonly charges: Charge[];
  readonly places: number[];
}

/**
 * Decides a group whose keys no single script can reach. The parts are consumed at the same time; where one is denied,
 * or fails, what the others took is given back by its receipt. For that moment others may see it as taken.
 */
export async function decideAcrossSlots(
  group: readonly Charge[],
  commands: SlotCommands,
): Promise<readonly Decision[]> {
  const parts = partsOf(group);
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
async function giveBack(charge: Charge, receipt: Receipt, commands: SlotCommands): Promise<Decision> {
  const [, left] = await Promise.all([commands.refund(charge, receipt), commands.peek(charge)]);
  return left;
}

function partsOf(group: readonly Charge[]): Part[] {
  const parts = new Map<number, Part>();
  for (const [place, charge] of group.entries()) {
    const slot = slotOf(charge.subject);
    let part = parts.get(slot);
    if (part === undefined) parts.set(slot, (part = { charges: [], places: [] }));
    part.charges.push(charge);
    part.places.push(place);
  }
  return [...parts.values()];
}
