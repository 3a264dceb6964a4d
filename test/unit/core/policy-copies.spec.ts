import { limiterBuilder, type PolicyOptions } from 'nestjs-distlimit';
import { ALGORITHMS } from '../../../lib/algorithms/index.js';
import { PolicyRegistry } from '../../../lib/core/policy-registry.js';

describe('a policy', () => {
  it('does not change with the options it was made from', () => {
    const registry = new PolicyRegistry({ algorithms: ALGORITHMS, report: () => {} });
    const options: PolicyOptions = { limit: 5, window: '1s', key: ['ip'] };
    const slot = registry.define('p', options, 'policies.p');
    options.limit = 500;
    (options.key as string[]).push('route');
    expect(registry.patched(slot, { window: '2s' })).toMatchObject({
      limit: 5,
      windowMs: 2_000,
      key: ['ip'],
    });
  });

  it('can be changed by nobody', () => {
    const registry = new PolicyRegistry({ algorithms: ALGORITHMS, report: () => {} });
    const { current } = registry.define('p', { limit: 5, window: '1s', key: ['ip'] }, 'policies.p');
    expect(() => Object.assign(current, { limit: 9 })).toThrow(TypeError);
    expect(() => Object.assign(current.options, { limit: 9 })).toThrow(TypeError);
    expect(() => (current.key as string[]).push('route')).toThrow(TypeError);
  });

  it('is not that of the next limiter of the same builder', async () => {
    const builder = limiterBuilder().limit(1);
    const first = builder.build();
    const second = builder.limit(50).build();
    expect(await first.update({ window: '2s' })).toMatchObject({ limit: 1, windowMs: 2_000 });
    expect(second.policy).toMatchObject({ limit: 50, windowMs: 1_000 });
    await first.close();
    await second.close();
  });
});
