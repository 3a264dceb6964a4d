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
