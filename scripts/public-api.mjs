// Lists every export of every entry point, as `specifier  kind Name`, one a line.
// Without an argument it rewrites public-api.txt, with --print it prints.
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { entryPoints } from './entry-points.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const { config } = ts.readConfigFile(`${root}tsconfig.esm.json`, (file) => ts.sys.readFile(file));
const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
const program = ts.createProgram(
  entryPoints.map(({ source }) => root + source),
  options,
);
const checker = program.getTypeChecker();

/** [flag, kind], in the order they are asked: a class is also a type. */
const KINDS = [
  [ts.SymbolFlags.Class, 'class'],
  [ts.SymbolFlags.Enum, 'enum'],
  [ts.SymbolFlags.Function, 'function'],
  [ts.SymbolFlags.Variable, 'const'],
  [ts.SymbolFlags.Interface, 'interface'],
  [ts.SymbolFlags.TypeAlias, 'type'],
  [ts.SymbolFlags.Namespace, 'namespace'],
];

/** Whether `export type { X }` or `import type` stands anywhere between the entry point and the declaration. */
function isTypeOnly(symbol) {
  for (let step = symbol; step.flags & ts.SymbolFlags.Alias; step = checker.getImmediateAliasedSymbol(step)) {
    if (step.declarations?.some((declaration) => ts.isTypeOnlyImportOrExportDeclaration(declaration)))
      return true;
  }
  return false;
}

function kindOf(symbol) {
  const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  const kind = KINDS.find(([flag]) => target.flags & flag)?.[1];
  if (!kind) throw new Error(`${symbol.name} is exported, but nothing declares it`);
  return target.flags & ts.SymbolFlags.Value && isTypeOnly(symbol) ? `type-only ${kind}` : kind;
}

function exportsOf({ specifier, source }) {
  const file = program.getSourceFile(root + source);
  if (!file) throw new Error(`${specifier}: there is no ${source}`);
  const module = checker.getSymbolAtLocation(file);
  return (module ? checker.getExportsOfModule(module) : []).map(
    (symbol) => `${specifier}  ${kindOf(symbol)} ${symbol.name}`,
  );
}

const text = entryPoints
  .flatMap(exportsOf)
  .toSorted((a, b) => (a < b ? -1 : 1))
  .map((line) => `${line}\n`)
  .join('');

if (process.argv.includes('--print')) process.stdout.write(text);
else writeFileSync(`${root}public-api.txt`, text);
