import { randomBytes } from 'node:crypto';

/** The fleet's policies as they stand in Redis. */
export interface StoredPolicies {
  /** Counts changes; 0 where nothing was ever stored, or nobody can tell. */
  readonly version: number;
  readonly dataSet: DataSet;
  /** JSON by the names of policies. */
  readonly json: ReadonlyMap<string, string>;
  /** Version and data set as Redis has them. */
  readonly raw: readonly [version: string, dataSet: string];
}

/** Of versions of one data set the higher one is newer. One that begins anew begins where Redis had lost everything. */
interface DataSet {
  /** '' where there is none. */
  readonly id: string;
  /** What it was given back of another one that had been lost: the last such. */
  readonly heirOf: { readonly id: string; readonly version: number };
}

const NO_DATA_SET: DataSet = { id: '', heirOf: { id: '', version: 0 } };

export const NOTHING_STORED: StoredPolicies = {
  version: 0,
  dataSet: NO_DATA_SET,
  json: new Map(),
  raw: ['', ''],
};

/** What Redis has, told from what it answers. What somebody else has written there counts as no version. */
export function storedPolicies(
  version: string,
  dataSet: string,
  json: ReadonlyMap<string, string>,
): StoredPolicies {
  const [, id = '', heirOf = '', heirVersion = '0'] = /^(\w+)(?: (\w+):(\d{1,15}))?$/.exec(dataSet) ?? [];
  return {
    version: /^\d{1,15}$/.test(version) ? Number(version) : 0,
    dataSet: { id, heirOf: { id: heirOf, version: Number(heirVersion) } },
    json,
    raw: [version, dataSet],
  };
}

/** The state with one policy changed; `undefined` removes it. */
export function withPolicy(stored: StoredPolicies, policy: string, text: string | undefined): StoredPolicies {
  const json = new Map(stored.json);
  if (text === undefined) json.delete(policy);
  else json.set(policy, text);
  const id = stored.dataSet.id || randomBytes(8).toString('hex');
  return made(stored.version + 1, { ...stored.dataSet, id }, json);
}

/**
 * What Redis should have, where it has lost what is known: it came back without its data, or from a replica that had not
 * yet got the latest change. `undefined` where what it has is right.
 */
export function givenBack(known: StoredPolicies, stored: StoredPolicies): StoredPolicies | undefined {
  if (known.dataSet.id === '') return undefined;
  if (stored.dataSet.id === known.dataSet.id) {
    return stored.version < known.version ? known : undefined;
  }
  if (stored.dataSet.id === '' && stored.json.size === 0) return known;
  const { heirOf } = stored.dataSet;
  const isHeir = heirOf.id === known.dataSet.id;
  if (isHeir && heirOf.version >= known.version) return undefined;
  // Somebody who knew of nothing has begun anew meanwhile: that is newer. Somebody who knew less has given that back: that
  // is older.
  const json = isHeir ? merged(stored.json, known.json) : merged(known.json, stored.json);
  const id = stored.dataSet.id || randomBytes(8).toString('hex');
  const version = Math.max(known.version, stored.version) + 1;
  return made(version, { id, heirOf: { id: known.dataSet.id, version: known.version } }, json);
}

export function haveSameJson(one: StoredPolicies, other: StoredPolicies): boolean {
  return (
    one.json.size === other.json.size && [...one.json].every(([name, text]) => other.json.get(name) === text)
  );
}

/** What stands under a policy's name; nothing where that is no object: who changes a policy repairs it. */
export function optionsIn(text: string | undefined): object {
  try {
    const value: unknown = JSON.parse(text ?? '{}');
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
  } catch {
    return {};
  }
}

function made(version: number, dataSet: DataSet, json: ReadonlyMap<string, string>): StoredPolicies {
  const { id, heirOf } = dataSet;
  const text = heirOf.id === '' ? id : `${id} ${heirOf.id}:${heirOf.version}`;
  return { version, dataSet, json, raw: [String(version), text] };
}

/** Field by field, `over` before `under`. */
function merged(under: ReadonlyMap<string, string>, over: ReadonlyMap<string, string>): Map<string, string> {
  const json = new Map(under);
  for (const [name, text] of over) {
    const below = under.get(name);
    const both = below === undefined ? text : JSON.stringify({ ...optionsIn(below), ...optionsIn(text) });
    json.set(name, both);
  }
  return json;
}
