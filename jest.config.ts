import type { Config } from 'jest';

type Project = Exclude<NonNullable<Config['projects']>[number], string>;

/** Specs that start servers, where there is no program for that: scripts/with-redis.mjs says so. */
const leftOut = process.env.SPECS_LEFT_OUT?.split(',').map((file) => `<rootDir>/${file}$`) ?? [];

const shared = {
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  testPathIgnorePatterns: ['/node_modules/', ...leftOut],
  modulePathIgnorePatterns: ['<rootDir>/dist/', '<rootDir>/sample/.*/dist/', '<rootDir>/test/consumers/'],
  transform: {
    // Types are checked apart, by `npm run typecheck`.
    '^.+\\.ts$': ['ts-jest', { useESM: true, tsconfig: '<rootDir>/tsconfig.json', diagnostics: false }],
  },
} satisfies Project;

/** For CJS packages that require Nest 12, and for Mercurius, which comes to an ES module; the files say more. */
const withNest12 = {
  setupFilesAfterEnv: ['<rootDir>/test/support/nest-preload.mjs'],
  transformIgnorePatterns: ['/node_modules/(?!@nestjs/|(.+/)?content-disposition/)'],
  transform: {
    ...shared.transform,
    '/node_modules/(@nestjs|content-disposition)/.+\\.js$': '<rootDir>/test/support/nest-transform.mjs',
  },
} satisfies Partial<Project>;

const sources = {
  '^nestjs-distlimit$': '<rootDir>/lib/index.ts',
  '^nestjs-distlimit/(.*)$': '<rootDir>/lib/$1/index.ts',
  '^(\\.{1,2}/.*)\\.js$': '$1',
};

const nest11 = '<rootDir>/compat/nest11/node_modules';

const config: Config = {
  collectCoverageFrom: ['lib/**/*.ts'],
  // Specs that touch Nest (test/e2e) run once on each Nest major, all others once. Those of `faults` assert how long
  // answers take, so they have a command and the machine to themselves: `npm run test:faults`. Those of `containers`
  // need Docker: `npm run test:containers`. Those of `observability` need Prometheus: `npm run test:observability`.
  projects: [
    {
      ...shared,
      ...withNest12,
      displayName: 'nest12',
      globals: { NEST_MAJOR: 12 },
      testMatch: ['<rootDir>/test/**/*.spec.ts'],
      testPathIgnorePatterns: [
        ...shared.testPathIgnorePatterns,
        '<rootDir>/test/faults/',
        '<rootDir>/test/containers/',
        // The throttler is CJS, and gets a Nest of its own here: test/throttler-process.spec.ts has Node run the two.
        '<rootDir>/test/e2e/throttler.spec.ts',
        '<rootDir>/test/observability/',
      ],
      moduleNameMapper: sources,
    },
    {
      ...shared,
      displayName: 'nest11',
      transformIgnorePatterns: ['/node_modules/(?!(.+/)?content-disposition/)'],
      transform: {
        ...shared.transform,
        '/node_modules/content-disposition/.+\\.js$': '<rootDir>/test/support/nest-transform.mjs',
      },
      globals: { NEST_MAJOR: 11 },
      testMatch: ['<rootDir>/test/e2e/**/*.spec.ts'],
      moduleNameMapper: {
        ...sources,
        '^(@nestjs/.*|@willsoto/nestjs-prometheus|graphql|ioredis|prom-client|reflect-metadata|rxjs)$': `${nest11}/$1`,
        '^rxjs/(.*)$': `${nest11}/rxjs/$1`,
      },
    },
    {
      ...shared,
      displayName: 'faults',
      testMatch: ['<rootDir>/test/faults/**/*.spec.ts'],
      moduleNameMapper: sources,
    },
    {
      ...shared,
      displayName: 'containers',
      testMatch: ['<rootDir>/test/containers/**/*.spec.ts'],
      moduleNameMapper: sources,
    },
    {
      ...shared,
      ...withNest12,
      displayName: 'observability',
      testMatch: ['<rootDir>/test/observability/**/*.spec.ts'],
      moduleNameMapper: sources,
    },
  ],
};

export default config;
