import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import ts from 'typescript';

const root = fileURLToPath(new URL('../..', import.meta.url));
const workplace = join(root, 'test/.processes');

/** Node processes of their own that run this library as it stands in `lib`. */
export interface LibraryProcesses {
  start(): ChildProcess;
  stop(): void;
}

/**
 * @param script a module in this folder, which gets the address of the library's module as its argument
 * @param entry that module, within `lib`
 */
export function libraryProcesses(script: string, entry = 'limiter-builder'): LibraryProcesses {
  mkdirSync(workplace, { recursive: true });
  const directory = mkdtempSync(join(workplace, 'run-'));
  const children: ChildProcess[] = [];
  transpile(`lib/${entry}.ts`, directory);
  const library = pathToFileURL(join(directory, `lib/${entry}.js`)).href;
  return {
    start() {
      const child = fork(join(root, 'test/support', script), [library], { execArgv: [] });
      children.push(child);
      return child;
    },
    stop() {
      for (const child of children) child.kill('SIGKILL');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Tells each the same, and gives the next message of each. */
export async function askAll<T>(children: readonly ChildProcess[], question: string | object): Promise<T[]> {
  const answers = children.map((child) => once(child, 'message'));
  for (const child of children) child.send(question);
  return (await Promise.all(answers)).map(([answer]) => answer as T);
}

/** Node runs no TypeScript: the file, and all it imports, are made JavaScript of. */
function transpile(file: string, directory: string, done = new Set<string>()): void {
  if (done.has(file)) return;
  done.add(file);
  const source = readFileSync(join(root, file), 'utf8');
  const { outputText } = ts.transpileModule(source, {
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.ESNext,
      experimentalDecorators: true,
    },
  });
  const target = join(directory, file.replace(/\.ts$/, '.js'));
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, outputText);
  for (const [, path = ''] of outputText.matchAll(/from '(\.[^']+)\.js'/g)) {
    transpile(relative(root, resolve(root, dirname(file), `${path}.ts`)), directory, done);
  }
}
