// The entry points of the package, as package.json says them: what users import, and the source behind it.
import { readFileSync } from 'node:fs';

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

/** @type {{ specifier: string, source: string }[]} for example nestjs-distlimit/testing from lib/testing/index.ts */
export const entryPoints = Object.entries(manifest.exports)
  .filter(([, conditions]) => typeof conditions === 'object')
  .map(([path, conditions]) => ({
    specifier: manifest.name + path.slice(1),
    source: conditions.import.default.replace('./dist/esm/', 'lib/').replace(/\.js$/, '.ts'),
  }));
