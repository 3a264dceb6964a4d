import type { Document, Pair, ParsedNode, YAMLMap } from 'yaml';
import { RateLimitConfigError, type ErrorCode } from '../core/errors.js';
import type { PolicyOptions } from '../core/policy.js';
import { checkPatch } from '../core/policy-completion.js';
import type { PolicySet } from '../core/policy-source.js';
import { withVariables } from './environment-variables.js';

/** What a file of policies says, and where it says it. */
export interface PolicyDocument {
  readonly policies: PolicySet;
  /** File, line and column, for example `rate-limits.yaml:3:5`. */
  where(policy: string, field?: string): string;
}

/** No set of policies is larger, and nothing larger is parsed. */
export const MOST_BYTES = 1_048_576;
/** Aliases can make a small file unfold to gigabytes. */
const MOST_ALIASES = 1_000;

type Options = Partial<PolicyOptions>;
type Path = readonly string[];

/**
 * Reads policies from YAML, of which JSON is a part: `defaults` for all of them, and `policies` by their names.
 * @param file its name, for messages
 * @throws RateLimitConfigError with line and column for the first thing that is wrong
 */
export async function readPolicyDocument(
  text: string,
  file: string,
  environment: NodeJS.ProcessEnv,
): Promise<PolicyDocument> {
  // Loaded by whoever has a file, and by nobody else.
  const { isMap, LineCounter, parseDocument, visit } = await import('yaml');
  const lines = new LineCounter();
  const document: Document.Parsed = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    merge: true,
    // It compares each key with all before it. They are looked at below.
    uniqueKeys: false,
  });

  const at = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${line}:${col}`;
  };
  const indexes = new Map<YAMLMap.Parsed, Map<string, Pair<ParsedNode, ParsedNode | null>>>();
  /** Where a path leads, as far as there is something. */
  const place = (path: Path): string => {
    let node: ParsedNode | null = document.contents;
    let offset = node?.range[0] ?? 0;
    for (const name of path) {
      const pair = isMap(node) ? indexes.get(node)?.get(name) : undefined;
      if (pair === undefined) break;
      offset = pair.key.range[0];
      node = pair.value;
    }
    return at(offset);
  };
  const fail = (where: string, code: ErrorCode, expected: string, received: unknown) => {
    throw new RateLimitConfigError({ code, path: where, expected, received });
  };

  const [problem] = document.errors;
  if (problem !== undefined) fail(at(problem.pos[0]), 'RL_INVALID_FILE', 'YAML or JSON', problem.message);
  visit(document, {
    Map(_, node) {
      const map = node as YAMLMap.Parsed;
      const index = new Map<string, Pair<ParsedNode, ParsedNode | null>>();
      for (const pair of map.items) {
        const name = String(pair.key);
        if (index.has(name)) fail(at(pair.key.range[0]), 'RL_INVALID_FILE', 'keys that differ', name);
        index.set(name, pair);
      }
      indexes.set(map, index);
    },
    Scalar(part, node) {
      if (part === 'key' || typeof node.value !== 'string') return;
      node.value = withVariables(node.value, environment, (name) =>
        fail(
          at(node.range?.[0] ?? 0),
          'RL_INVALID_FILE',
          `a value of the environment variable ${name}`,
          undefined,
        ),
      );
    },
  });

  let content: unknown;
  try {
    content = document.toJS({ maxAliasCount: MOST_ALIASES });
  } catch (error) {
    fail(at(0), 'RL_INVALID_FILE', 'aliases that unfold', (error as Error).message);
  }
  const record = (value: unknown, path: Path): Record<string, unknown> => {
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
    return fail(place(path), 'RL_INVALID_FILE', 'a mapping', value);
  };
  // Also what is empty: an editor may be about to fill it.
  const root = record(content, []);
  for (const name of Object.keys(root)) {
    if (name === 'defaults' || name === 'policies' || name === '$schema') continue;
    fail(place([name]), 'RL_UNKNOWN_OPTION', 'one of defaults, policies', name);
  }

  const checked = (value: unknown, path: Path): Options => {
    const options = record(value, path);
    try {
      return checkPatch(options, '');
    } catch (error) {
      if (!(error instanceof RateLimitConfigError)) throw error;
      // A file's values are plain: what is shown of one can be shown again.
      const [field = ''] = error.path.split('.');
      const where = `${place([...path, field])}: ${[...path, field].join('.')}`;
      return fail(where, error.code, error.expected, field in options ? options[field] : field);
    }
  };
  const defaults = isNothing(root.defaults) ? {} : checked(root.defaults, ['defaults']);
  const entries = Object.entries(isNothing(root.policies) ? {} : record(root.policies, ['policies']));
  return {
    policies: Object.fromEntries(
      entries.map(([name, value]) => [
        name,
        { ...defaults, ...checked(isNothing(value) ? {} : value, ['policies', name]) },
      ]),
    ),
    where: (policy, field) => {
      if (field === undefined) return place(['policies', policy]);
      // What is merged into a policy is the policy's: nodes don't tell.
      const isOwn = Object.hasOwn(Object(Object(root.policies)[policy]) as object, field);
      const isDefault = !isOwn && Object.hasOwn(defaults, field);
      return place(isDefault ? ['defaults', field] : ['policies', policy, field]);
    },
  };
}

function isNothing(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}
