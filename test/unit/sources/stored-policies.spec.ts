import {
  givenBack,
  haveSameJson,
  NOTHING_STORED,
  storedPolicies,
  withPolicy,
  type StoredPolicies,
} from '../../../lib/sources/stored-policies.js';

const stored = (version: string, dataSet: string, json: Record<string, object> = {}) =>
  storedPolicies(
    version,
    dataSet,
    new Map(Object.entries(json).map(([name, options]) => [name, JSON.stringify(options)])),
  );
const shown = ({ raw, json }: StoredPolicies) => ({
  raw,
  json: Object.fromEntries([...json].map(([name, text]) => [name, JSON.parse(text) as unknown])),
});

const KNOWN = stored('10', 'old', { api: { limit: 5, block: '1m' }, login: { limit: 3 } });

describe('what Redis is given back', () => {
  it.each<[string, StoredPolicies, StoredPolicies]>([
    ['it has what is known', KNOWN, stored('10', 'old')],
    ['it has something newer', KNOWN, stored('11', 'old', { api: { limit: 6 } })],
    ['nothing is known', NOTHING_STORED, stored('10', 'old')],
    ['somebody who knew as much has given it back', KNOWN, stored('11', 'new old:10')],
    ['somebody who knew more has given it back', KNOWN, stored('13', 'new old:12')],
  ])('nothing, where %s', (_when, known, found) => {
    expect(givenBack(known, found)).toBeUndefined();
  });

  it('all that is known, where it is empty or has only what was there before', () => {
    expect(givenBack(KNOWN, stored('', ''))).toBe(KNOWN);
    expect(givenBack(KNOWN, stored('9', 'old', { api: { limit: 4 } }))).toBe(KNOWN);
  });

  it('what is known under what somebody has stored since who knew nothing, also under the same version', () => {
    for (const version of ['1', '10']) {
      const found = stored(version, 'new', { api: { limit: 7 }, mail: { limit: 1 } });
      expect(shown(givenBack(KNOWN, found)!)).toEqual({
        raw: ['11', 'new old:10'],
        json: { api: { limit: 7, block: '1m' }, login: { limit: 3 }, mail: { limit: 1 } },
      });
    }
  });

  it('what is known over what somebody has given back who knew less', () => {
    const found = stored('10', 'new old:9', { api: { limit: 4, block: '1m' }, mail: { limit: 1 } });
    expect(shown(givenBack(KNOWN, found)!)).toEqual({
      raw: ['11', 'new old:10'],
      json: { api: { limit: 5, block: '1m' }, login: { limit: 3 }, mail: { limit: 1 } },
    });
  });

  it('what is known over a version that no change can have made', () => {
    for (const version of ['1e300', '9007199254740993000', '-1', 'x']) {
      expect(givenBack(KNOWN, stored(version, 'old', { api: { limit: 4 } }))).toBe(KNOWN);
    }
  });

  it('what is known under policies of a data set that nobody can tell', () => {
    const found = stored('3', 'what is this', { api: { limit: 7 } });
    const { raw, json } = shown(givenBack(KNOWN, found)!);
    expect(raw).toEqual(['11', expect.stringMatching(/^[\da-f]{16} old:10$/)]);
    expect(json).toEqual({ api: { limit: 7, block: '1m' }, login: { limit: 3 } });
  });
});

it('a change counts on, and begins a data set where there is none', () => {
  expect(shown(withPolicy(KNOWN, 'login', undefined))).toEqual({
    raw: ['11', 'old'],
    json: { api: { limit: 5, block: '1m' } },
  });
  const first = shown(withPolicy(NOTHING_STORED, 'api', '{"limit":1}'));
  expect(first).toEqual({ raw: ['1', expect.stringMatching(/^[\da-f]{16}$/)], json: { api: { limit: 1 } } });
  expect(shown(withPolicy(stored('11', 'new old:10'), 'api', '{"limit":1}')).raw).toEqual([
    '12',
    'new old:10',
  ]);
});

it('tells sets of policies apart by what they say', () => {
  expect(
    haveSameJson(KNOWN, stored('11', 'new', { login: { limit: 3 }, api: { limit: 5, block: '1m' } })),
  ).toBe(true);
  expect(haveSameJson(KNOWN, stored('10', 'old', { api: { limit: 5, block: '1m' } }))).toBe(false);
  expect(
    haveSameJson(KNOWN, stored('10', 'old', { api: { limit: 5, block: '1m' }, mail: { limit: 3 } })),
  ).toBe(false);
});
