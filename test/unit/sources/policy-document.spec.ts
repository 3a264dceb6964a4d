import { RateLimitConfigError } from 'nestjs-distlimit';
import { readPolicyDocument } from '../../../lib/sources/policy-document.js';

const ENV = { LIMIT: '7', WINDOW: '10s', EMPTY: '' };
const read = (text: string) => readPolicyDocument(text, 'limits.yaml', ENV);

describe('a file of policies', () => {
  it.each<[string, string, object]>([
    ['no policies', '# none yet\npolicies:\n', {}],
    ['YAML', 'policies:\n  api: { limit: 5, window: 1m }', { api: { limit: 5, window: '1m' } }],
    [
      'JSON',
      '{"$schema":"x","policies":{"api":{"limit":5,"window":60000}}}',
      { api: { limit: 5, window: 60_000 } },
    ],
    [
      'defaults',
      'defaults: { limit: 200, window: 1s, key: [ip, route] }\npolicies:\n  api:\n  login: { limit: 5, block: 1m }',
      {
        api: { limit: 200, window: '1s', key: ['ip', 'route'] },
        login: { limit: 5, window: '1s', key: ['ip', 'route'], block: '1m' },
      },
    ],
    [
      'environment variables',
      'policies:\n  api: { limit: "${LIMIT}", window: "${WINDOW}", cost: "${COST:-2}", block: "${EMPTY:-1s}" }',
      { api: { limit: '7', window: '10s', cost: '2', block: '1s' } },
    ],
    [
      'what is no variable',
      'policies:\n  "a${b}": { key: "header:x-$$" }',
      { 'a${b}': { key: 'header:x-$$' } },
    ],
    [
      'an alias and a merge',
      'policies:\n  a: &a { limit: 1, window: 1s }\n  b: { <<: *a, limit: 2 }',
      {
        a: { limit: 1, window: '1s' },
        b: { limit: 2, window: '1s' },
      },
    ],
    [
      'the name of an inherited property',
      'policies:\n  __proto__: { limit: 1 }',
      JSON.parse('{"__proto__":{"limit":1}}'),
    ],
  ])('can hold %s', async (_what, text, policies) => {
    expect((await read(text)).policies).toEqual(policies);
  });

  it.each<[string, string, string, string]>([
    ['nothing', '', 'RL_INVALID_FILE', 'limits.yaml:1:1'],
    ['a comment alone', '# later', 'RL_INVALID_FILE', 'limits.yaml:1:1'],
    ['broken syntax', 'policies:\n  api: { limit: 5', 'RL_INVALID_FILE', 'limits.yaml:2:18'],
    [
      'a name twice',
      'policies:\n  api: { limit: 5 }\n  api: { limit: 6 }',
      'RL_INVALID_FILE',
      'limits.yaml:3:3',
    ],
    ['an unknown part', 'policy:\n  api: { limit: 5 }', 'RL_UNKNOWN_OPTION', 'limits.yaml:1:1'],
    [
      'an unknown option',
      'policies:\n  api:\n    limit: 5\n    windov: 1m',
      'RL_UNKNOWN_OPTION',
      'limits.yaml:4:5: policies.api.windov',
    ],
    [
      'a wrong limit',
      'policies:\n  api:\n    window: 1m\n    limit: lots',
      'RL_INVALID_LIMIT',
      'limits.yaml:4:5: policies.api.limit',
    ],
    [
      'a wrong default',
      'defaults:\n  window: soon',
      'RL_INVALID_DURATION',
      'limits.yaml:2:3: defaults.window',
    ],
    [
      'a name among the options',
      'policies:\n  api: { name: other }',
      'RL_UNKNOWN_OPTION',
      'limits.yaml:2:10: policies.api.name',
    ],
    [
      'a function',
      'policies:\n  api: { skip: "() => true" }',
      'RL_INVALID_OPTION',
      'limits.yaml:2:10: policies.api.skip',
    ],
    ['a missing variable', 'policies:\n  api:\n    limit: ${NOT_SET}', 'RL_INVALID_FILE', 'limits.yaml:3:12'],
    ['an empty variable', 'policies:\n  api:\n    limit: ${EMPTY}', 'RL_INVALID_FILE', 'limits.yaml:3:12'],
    ['a list', 'policies:\n  - limit: 5', 'RL_INVALID_FILE', 'limits.yaml:1:1'],
    ['text', 'policies', 'RL_INVALID_FILE', 'limits.yaml:1:1'],
    ['a policy that is a number', 'policies:\n  api: 5', 'RL_INVALID_FILE', 'limits.yaml:2:3'],
  ])('is refused with %s, and with its place', async (_what, text, code, place) => {
    const error = await read(text).then(
      () => undefined,
      (problem: unknown) => problem as RateLimitConfigError,
    );
    expect(error).toBeInstanceOf(RateLimitConfigError);
    expect([error!.code, error!.path]).toEqual([code, place]);
  });

  it('does not unfold aliases without end', async () => {
    const levels = Array.from({ length: 12 }, (_, i) => `l${i + 1}: &l${i + 1} [${`*l${i},`.repeat(9)}]`);
    const text = `policies:\n  l0: &l0 { limit: 1 }\n${levels.map((line) => `  ${line}`).join('\n')}`;
    await expect(read(text)).rejects.toMatchObject({ code: 'RL_INVALID_FILE' });
  });

  it('tells where a policy stands', async () => {
    const { where } = await read('policies:\n  a: {}\n  b: { limit: 1 }');
    expect([where('a'), where('b'), where('c')]).toEqual([
      'limits.yaml:2:3',
      'limits.yaml:3:3',
      'limits.yaml:1:1',
    ]);
  });

  it('tells where a field of a policy stands, among its own, the defaults, or what is merged into it', async () => {
    const { where } = await read(
      'defaults:\n  window: 1m\n  limit: 5\npolicies:\n  a: &a\n    limit: 1\n  b:\n    <<: *a\n  c:\n',
    );
    expect([where('a', 'limit'), where('a', 'window'), where('c', 'limit'), where('a', 'cost')]).toEqual([
      'limits.yaml:6:5',
      'limits.yaml:2:3',
      'limits.yaml:3:3',
      'limits.yaml:5:3',
    ]);
    expect(where('b', 'limit')).toBe('limits.yaml:7:3');
  });
});
