import { RecentCache } from '../../../lib/core/recent-cache.js';

const value = (id: string) => ({ id });

describe('RecentCache', () => {
  it('never holds more than two generations', () => {
    const cache = new RecentCache<{ id: string }>(10);
    const keys = Array.from({ length: 1000 }, (_, index) => `key ${index}`);
    for (const key of keys) cache.set(key, value('x'));
    expect(keys.filter((key) => cache.get(key) !== undefined).length).toBeLessThanOrEqual(20);
    expect(cache.get('key 0')).toBeUndefined();
    expect(cache.get('key 999')).toEqual(value('x'));
  });

  it('keeps what is used while a flood passes', () => {
    const cache = new RecentCache<{ id: string }>(10);
    cache.set('regular', value('regular'));
    for (let index = 0; index < 1000; index++) {
      cache.set(`flood ${index}`, value('flood'));
      if (index % 5 === 0) expect(cache.get('regular')).toEqual(value('regular'));
    }
  });

  it('does not keep keys longer than 64 characters', () => {
    const cache = new RecentCache<{ id: string }>(10);
    cache.set('k'.repeat(64), value('fits'));
    cache.set('k'.repeat(65), value('too long'));
    expect(cache.get('k'.repeat(64))).toEqual(value('fits'));
    expect(cache.get('k'.repeat(65))).toBeUndefined();
  });
});
