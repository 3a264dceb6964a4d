// The application is compiled to CommonJS, but Nest 12 is ESM only: its tests run as ES modules.
module.exports = {
  rootDir: 'src',
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '^.+\\.ts$': [
      'ts-jest',
      {
        useESM: true,
        tsconfig: {
          ...require('./tsconfig.json').compilerOptions,
          module: 'esnext',
          moduleResolution: 'bundler',
        },
      },
    ],
  },
};
