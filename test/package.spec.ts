import { readFileSync } from 'node:fs';

interface Manifest {
  readonly main: string;
  readonly types: string;
  readonly exports: Readonly<Record<string, string | Record<string, Record<string, string>>>>;
  readonly typesVersions: { readonly '*': Readonly<Record<string, readonly string[]>> };
}

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as Manifest;

const entries = Object.entries(manifest.exports).flatMap(([path, conditions]) =>
  typeof conditions === 'string' ? [] : [{ name: path.slice(2), conditions }],
);

it('shows resolvers that know no `exports` the same entry points', () => {
  const typesOf = (name: string) => (name === '' ? manifest.types : manifest.typesVersions['*'][name]?.[0]);
  expect(entries.map(({ name }) => typesOf(name))).toEqual(
    entries.map(({ conditions }) => conditions['require']?.['types']),
  );
  expect(Object.keys(manifest.typesVersions['*'])).toEqual(
    entries.map(({ name }) => name).filter((name) => name !== ''),
  );
  expect(manifest.main).toBe(entries.find(({ name }) => name === '')?.conditions['require']?.['default']);
});

it('has types beside each file, and one file for import and for require() of ES modules', () => {
  for (const { conditions } of entries) {
    expect(Object.keys(conditions)).toEqual(['import', 'module-sync', 'require']);
    for (const [condition, files] of Object.entries(conditions)) {
      expect(files['types']).toBe(files['default']?.replace(/\.js$/, '.d.ts'));
      expect(files['default']).toContain(condition === 'require' ? '/cjs/' : '/esm/');
    }
    expect(conditions['module-sync']).toEqual(conditions['import']);
  }
});
