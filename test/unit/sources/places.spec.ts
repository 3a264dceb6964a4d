import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileSource, type PolicyOptions, type RateLimitConfigError } from 'nestjs-distlimit';
import { PolicySources } from '../../../lib/core/policy-sources.js';
import { engineParts } from '../../../lib/engine-parts.js';
import { until } from '../../support/redis-servers.js';

const CODE = { limit: 5, window: '1m' } as const;

let directory: string;
let file: string;
let sources: PolicySources | undefined;
let reports: string[];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'distlimit-places-'));
  file = join(directory, 'limits.yaml');
  reports = [];
});
afterEach(async () => {
  await sources?.close();
  rmSync(directory, { recursive: true, force: true });
});

/** Policies of the code and a file, as they are when an application starts. */
async function open(text: string, code: Record<string, PolicyOptions> = {}) {
  writeFileSync(file, text);
  const report = ({ message }: { message: string }) => void reports.push(message);
  sources = new PolicySources([fileSource(file, { pollIntervalMs: 10 })], report);
  await sources.open({ redis: undefined, prefix: 'places' });
  engineParts(
    {},
    report,
    (registry) => {
      for (const [name, policy] of Object.entries(code)) registry.define(name, policy, `policies.${name}`);
    },
    sources,
  );
}

const own = (field: string) => `policies:\n  api:\n    limit: 5\n    window: 1m\n    ${field}\n`;

describe('what is found wrong when a policy is put together is reported with the place of the field', () => {
  it.each<[string, Record<string, PolicyOptions>, string, string]>([
    [
      'an algorithm',
      {},
      own('algorithm: magic'),
      'RL_UNKNOWN_ALGORITHM: limits.yaml:5:5: policies.api.algorithm',
    ],
    [
      'an algorithm of the defaults',
      {},
      `defaults:\n  algorithm: magic\n${own('mode: shadow')}`,
      'RL_UNKNOWN_ALGORITHM: limits.yaml:2:3: policies.api.algorithm',
    ],
    [
      'an algorithm for a policy of the code',
      { api: CODE },
      'policies:\n  api:\n    algorithm: magic',
      'RL_UNKNOWN_ALGORITHM: limits.yaml:3:5: policies.api.algorithm',
    ],
    ['a cost', {}, own('cost: 6'), 'RL_COST_OVER_CAPACITY: limits.yaml:5:5: policies.api.cost'],
    [
      'a cost of the code, which the file makes wrong',
      { api: { ...CODE, cost: 2 } },
      'policies:\n  api:\n    limit: 1',
      'RL_COST_OVER_CAPACITY: limits.yaml:2:3: policies.api.cost',
    ],
    [
      'fields that do not go together',
      {},
      own('burst: 9007199254740991'),
      'RL_QUOTA_TOO_LARGE: limits.yaml:2:3: policies.api:',
    ],
  ])('%s', async (_what, code, text, message) => {
    const error = await open(text, code).then(
      () => undefined,
      (thrown: unknown) => thrown as RateLimitConfigError,
    );
    expect(error?.message).toContain(message);
    // What was received is described once.
    expect(error?.message).not.toContain('\\"');
  });

  it('an algorithm in a file that is changed', async () => {
    await open(own('algorithm: gcra'));
    writeFileSync(file, own('algorithm: magic'));
    await until(() => reports.length > 0);
    expect(reports).toEqual([
      expect.stringContaining(
        'RL_UNKNOWN_ALGORITHM: limits.yaml:5:5: policies.api.algorithm: expected one of',
      ),
    ]);
    expect(reports[0]).toMatch(/received "magic"$/);
  });
});
