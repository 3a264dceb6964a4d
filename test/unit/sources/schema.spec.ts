import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { ALGORITHMS } from '../../../lib/algorithms/index.js';
import { POLICY_FIELDS } from '../../../lib/core/policy-completion.js';
import { readPolicyDocument } from '../../../lib/sources/policy-document.js';

interface Schema {
  readonly definitions: {
    readonly policy: { readonly properties: Record<string, { anyOf?: [{ enum?: string[] }] }> };
  };
}

const schema = JSON.parse(
  readFileSync(new URL('../../../rate-limits.schema.json', import.meta.url), 'utf8'),
) as Schema;
const isValid = new Ajv({ strict: true, strictTypes: false, allErrors: true }).compile(schema);

it('has the options that a file can have', () => {
  // Functions are the code's.
  const ofFiles = POLICY_FIELDS.filter((field) => field !== 'skip' && field !== 'countIf');
  const { properties } = schema.definitions.policy;
  expect(Object.keys(properties).toSorted()).toEqual(ofFiles.toSorted());
  expect(properties.algorithm!.anyOf![0].enum!.toSorted()).toEqual(Object.keys(ALGORITHMS).toSorted());
});

it('knows the algorithms, as the engine does', () => {
  expect(isValid({ policies: { api: { algorithm: 'magic' } } })).toBe(false);
});

const policy = (options: object) => ({ policies: { api: options } });

it.each<[object, boolean]>([
  [{}, true],
  [{ policies: null }, true],
  [{ defaults: { limit: 5 }, policies: { api: null } }, true],
  [policy({ limit: 0, window: 1 }), true],
  [policy({ limit: '5', window: '1.5s', burst: '9', cost: '2' }), true],
  [policy({ limit: -1 }), false],
  [policy({ limit: 1.5 }), false],
  [policy({ limit: 'many' }), false],
  [policy({ limit: '${N:-5}', window: '${N:-1}s' }), true],
  [policy({ window: 0 }), false],
  [policy({ window: '1 week' }), false],
  [policy({ window: '10 s', maxDelay: 0, block: '1m' }), true],
  [policy({ key: 'ip' }), true],
  [policy({ key: ['ip', 'header:X-Api-Key'] }), true],
  [policy({ key: [] }), false],
  [policy({ key: 'header:' }), false],
  [policy({ key: 'tenant' }), false],
  [policy({ algorithm: 'gcra', mode: 'shadow', enforceAt: 'guard', onUnavailable: 'deny' }), true],
  [policy({ mode: 'watch' }), false],
  [policy({ onUnavailable: 'hope' }), false],
  [policy({ burst: 0 }), false],
  [policy({ cost: 0 }), false],
  [policy({ name: 'other' }), false],
  [policy({ skip: true }), false],
  [{ policy: {} }, false],
  [{ policies: [] }, false],
  [{ policies: { api: 5 } }, false],
])('says of %j what the loader says: %s', async (content, accepted) => {
  const loads = await readPolicyDocument(JSON.stringify(content), 'limits.json', {}).then(
    ({ policies }) => policies,
    () => undefined,
  );
  expect([isValid(content), loads !== undefined]).toEqual([accepted, accepted]);
});
