/** What a suite needs of a test framework. Jest, Vitest and Mocha have these as globals; `node:test` exports them. */
export interface TestFramework {
  readonly describe: (name: string, define: () => void) => unknown;
  readonly it: (name: string, run: () => Promise<void>) => unknown;
}

/**
 * The framework that was given, or the one whose functions are global.
 * @throws Error where there is none
 */
export function testFramework(given: TestFramework | undefined): TestFramework {
  const framework: unknown = given ?? globalThis;
  if (isTestFramework(framework)) return framework;
  throw new Error('no test framework: describe and it are not global, so give them as `framework`');
}

function isTestFramework(value: unknown): value is TestFramework {
  const { describe, it } = value as Partial<TestFramework>;
  return typeof describe === 'function' && typeof it === 'function';
}
