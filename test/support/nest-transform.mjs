// Nest 12 is ESM only, and below Node 24.9 jest can't require() that: give CJS packages that require Nest
// (@willsoto/nestjs-prometheus, @nestjs/throttler) a CommonJS form of it. Imports keep the original. So with
// content-disposition, which Mercurius comes to.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const own = readFileSync(fileURLToPath(import.meta.url));

export default {
  getCacheKey: (
    source,
    path,
    { transformOptions, supportsStaticESM = transformOptions?.supportsStaticESM },
  ) =>
    createHash('sha256')
      .update(own)
      .update(path)
      .update(source)
      .update(String(supportsStaticESM))
      .digest('hex'),

  process(source, path, { supportsStaticESM }) {
    if (supportsStaticESM) return { code: source };
    const { outputText } = ts.transpileModule(
      source.replaceAll('import.meta.url', 'require("node:url").pathToFileURL(__filename).href'),
      { fileName: path, compilerOptions: { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2023 } },
    );
    return { code: outputText };
  },
};
