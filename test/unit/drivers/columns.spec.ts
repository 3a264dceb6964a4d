import fc from 'fast-check';
import { Columns } from '../../../lib/drivers/memory/columns.js';
import { SubjectKey } from '../../../lib/drivers/memory/subject-key.js';

const CAPACITY = 12;

/** Tags that put most entries into few slots, many of them at the end of the table, so that probing wraps round. */
const tags = fc.constantFrom(-1, -2, -0x1000, -0x2000_0000, 2, 3, 0x1000_0000, 0x7fff_ffff);
const names = fc.constantFrom(...'abcdefghijk', 'long:'.repeat(9), 'ä', '\ud800', '\ud800x');

type Command = { kind: 'put' | 'remove'; name: string; tag: number };
const commands = fc.array(
  fc.record<Command>({ kind: fc.constantFrom('put', 'put', 'remove'), name: names, tag: tags }),
  { maxLength: 60 },
);

describe('Columns', () => {
  it('is a map, whatever is inserted and removed, with the tags a key has', () => {
    fc.assert(
      fc.property(commands, (steps) => {
        const columns = new Columns(CAPACITY, 2, false);
        const key = new SubjectKey(0);
        const model = new Map<string, { tag: number; value: number }>();
        const find = (name: string, tag: number) => {
          key.set(name);
          return columns.find(name, key, tag);
        };
        let value = 0;
        for (const { kind, name, tag } of steps) {
          const known = model.get(name);
          if (kind === 'remove') {
            if (known === undefined) continue;
            columns.remove(find(name, known.tag));
            model.delete(name);
          } else if (known === undefined && model.size < CAPACITY - 1) {
            key.set(name);
            const slot = columns.insert(name, key, tag);
            expect([...columns.records.slice(columns.registersAt(slot)).slice(0, 2)]).toEqual([0, 0]);
            model.set(name, { tag, value: ++value });
            columns.records[columns.registersAt(slot)] = value;
            columns.records[columns.registersAt(slot) + 1] = -value;
            columns.records[columns.expiryAt(slot)] = value * 10;
          }
          expect(columns.count).toBe(model.size);
          for (const [text, held] of model) {
            const slot = find(text, held.tag);
            expect(columns.text(slot)).toBe(text);
            const at = columns.registersAt(slot);
            expect([columns.records[at], columns.records[at + 1]]).toEqual([held.value, -held.value]);
            expect(columns.hasExpired(slot, held.value * 10 - 1)).toBe(false);
            expect(columns.hasExpired(slot, held.value * 10)).toBe(true);
          }
        }
        for (let slot = 0; slot < CAPACITY; slot++) {
          if (columns.holds(slot)) expect(model.has(columns.text(slot))).toBe(true);
        }
        expect(find('absent', -1)).toBe(-1);
        expect(find('absent', 2)).toBe(-1);
      }),
    );
  });

  it('is still searched while entries move to larger columns', () => {
    const key = new SubjectKey(0);
    const old = new Columns(8, 1, true);
    const names = ['a', 'b', 'c', 'x'.repeat(40)];
    for (const name of names) {
      key.set(name);
      old.insert(name, key, -5);
    }
    const grown = new Columns(16, 1, true);
    key.set('b');
    const from = old.find('b', key, -5);
    old.records[old.registersAt(from)] = 7;
    const to = grown.takeFrom(old, from, -5);
    expect(grown.records[grown.registersAt(to)]).toBe(7);
    expect(grown.text(to)).toBe('b');
    expect([old.count, grown.count]).toEqual([3, 1]);
    expect(old.holds(from)).toBe(false);
    for (const name of ['a', 'c', 'x'.repeat(40)]) {
      key.set(name);
      expect(old.text(old.find(name, key, -5))).toBe(name);
    }
    key.set('b');
    expect(old.find('b', key, -5)).toBe(-1);
  });
});
