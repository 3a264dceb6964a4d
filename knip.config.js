import { entryPoints } from './scripts/entry-points.mjs';

export default {
  entry: [
    ...entryPoints.map(({ source }) => source).filter((source) => source !== 'lib/index.ts'),
    'bench/*.mjs',
    // Forked by the benchmarks.
    'bench/children/*.mjs',
    'sample/*/src/main.ts',
    'test/**/*.spec.ts',
    // Forked by tests.
    'test/support/{consumer,throttled-app,traffic}.mjs',
    // Named in jest.config.ts.
    'test/support/nest-{preload,transform}.mjs',
  ],
  project: ['{lib,bench,scripts,test}/**/*.{ts,mjs}', 'sample/*/src/**/*.ts'],
  // Applications of their own, installed and run by scripts/consumers.mjs.
  ignore: ['test/consumers/**'],
  // A type that an exported function of the same file mentions.
  ignoreExportsUsedInFile: { interface: true, type: true },
  // Not on every system, and only called where it is.
  ignoreBinaries: ['mkfifo', 'redis-server', 'prometheus', 'promtool'],
  ignoreDependencies: [
    // Loaded by jest to read jest.config.ts.
    'ts-node',
    // Loaded by @nestjs/apollo.
    '@as-integrations/express5',
  ],
};
