import { OutageLedger } from '../../../lib/drivers/hybrid/outage-ledger.js';
import { chargeOf } from './support.js';

const NOW = 1_700_000_000_000;
const subjectsOf = (ledger: OutageLedger) => ledger.draw(NOW).map(({ counter }) => counter.subject);

it('bills nothing that a reset has forgotten, and what came after it', () => {
  const ledger = new OutageLedger(10);
  const charge = chargeOf('a');
  ledger.book(charge, 5, NOW);
  ledger.forget(charge);
  expect(subjectsOf(ledger)).toEqual([]);
  ledger.book(charge, 5, NOW);
  ledger.forget(charge);
  ledger.book(charge, 2, NOW);
  expect(ledger.draw(NOW)).toMatchObject([{ cost: 2 }]);
});

it('holds no more than it was told to, the latest of it', () => {
  const ledger = new OutageLedger(3);
  for (let i = 0; i < 10; i++) ledger.book(chargeOf(`s${i}`), 1, NOW);
  expect(ledger.size).toBe(3);
  expect(subjectsOf(ledger)).toEqual(['s7', 's8', 's9']);
  ledger.forget(chargeOf('s8'));
  for (let i = 10; i < 12; i++) ledger.book(chargeOf(`s${i}`), 1, NOW);
  expect(['s7', 's8', 's9', 's10', 's11'].filter((s) => ledger.isLocal(chargeOf(s), NOW))).toEqual([
    's9',
    's10',
    's11',
  ]);
});

describe('what will never be on a bill', () => {
  const MINUTE = { limit: 100, window: '1m', algorithm: 'fixed-window' } as const;

  function open(maxEntries = 10) {
    const dropped: number[] = [];
    return { dropped, ledger: new OutageLedger(maxEntries, (cost) => dropped.push(cost)) };
  }

  it('is told where its window has ended', () => {
    const { ledger, dropped } = open();
    ledger.book(chargeOf('a', MINUTE), 5, NOW);
    ledger.book(chargeOf('a', MINUTE), 2, NOW + 60_000);
    expect(ledger.draw(NOW + 60_000)).toMatchObject([{ cost: 2 }]);
    expect(dropped).toEqual([5]);
    ledger.book(chargeOf('a', MINUTE), 3, NOW + 60_000);
    ledger.sweep(NOW + 300_000);
    expect(dropped).toEqual([5, 3]);
  });

  it('is told where it makes room for others, or is forgotten altogether', () => {
    const { ledger, dropped } = open(1);
    ledger.book(chargeOf('a'), 5, NOW);
    ledger.book(chargeOf('b'), 4, NOW);
    expect(dropped).toEqual([5]);
    ledger.clear();
    expect(dropped).toEqual([5, 4]);
  });

  it('is neither what was reset or refunded, nor what is put back', () => {
    const { ledger, dropped } = open();
    ledger.book(chargeOf('reset'), 5, NOW);
    ledger.forget(chargeOf('reset'));
    const admission = ledger.book(chargeOf('a', MINUTE), 5, NOW);
    ledger.cancel(chargeOf('a', MINUTE), admission, 5, NOW);
    ledger.book(chargeOf('b', MINUTE), 4, NOW);
    const [payment] = ledger.draw(NOW);
    ledger.putBack(payment!, NOW);
    expect(ledger.draw(NOW)).toMatchObject([{ cost: 4 }]);
    expect(dropped).toEqual([]);
  });
});
