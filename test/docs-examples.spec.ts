import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { jest } from '@jest/globals';
import ts from 'typescript';
import { readPolicyDocument } from '../lib/sources/policy-document.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const workplace = join(root, 'test/.examples');

/** One fenced block of TypeScript. ```` ```ts types-only ```` is compiled and not run. */
interface Example {
  readonly file: string;
  readonly code: string;
  readonly runs: boolean;
}

function pages(): string[] {
  const docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' });
  return [
    'README.md',
    ...docs.filter((name) => /^(?!api\/).*\.md$/.test(name)).map((name) => `docs/${name}`),
  ];
}

/** A block that starts with a file's name can be imported by the other blocks of its page. */
function examplesOf(page: string): Example[] {
  const blocks = readFileSync(join(root, page), 'utf8').matchAll(/^```ts([^\n]*)\n(.*?)^```$/gms);
  return [...blocks].map(([, info = '', code = ''], index) => ({
    file: join(workplace, page.replace('.md', ''), /^\/\/ (\S+\.ts)$/m.exec(code)?.[1] ?? `${index + 1}.ts`),
    code,
    runs: !info.includes('types-only'),
  }));
}

const examples = pages().flatMap(examplesOf);

beforeAll(() => {
  rmSync(workplace, { recursive: true, force: true });
  for (const { file, code } of examples) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, code);
  }
});
afterAll(() => rmSync(workplace, { recursive: true, force: true }));

it('has examples that compile', () => {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (file) => ts.sys.readFile(file));
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const program = ts.createProgram(
    examples.map(({ file }) => file),
    { ...options, noUnusedLocals: false, noUnusedParameters: false },
  );
  const problems = ts.getPreEmitDiagnostics(program).map(({ file, start, messageText }) => {
    const line = file === undefined ? 0 : file.getLineAndCharacterOfPosition(start ?? 0).line + 1;
    const text = ts.flattenDiagnosticMessageText(messageText, ' ');
    return `${file === undefined ? '' : relative(workplace, file.fileName)}:${line} ${text}`;
  });
  expect(problems).toEqual([]);
}, 60_000);

it.each(examples.filter(({ runs }) => runs).map((example) => [relative(workplace, example.file), example]))(
  'has an example that prints what it says: %s',
  async (_name, { file, code }) => {
    const printed: string[] = [];
    const log = jest.spyOn(console, 'log').mockImplementation((...args) => void printed.push(args.join(' ')));
    try {
      await import(pathToFileURL(file).href);
    } finally {
      log.mockRestore();
    }
    const promised = [...code.matchAll(/^\s*console\.log\(.*\); \/\/ (.*)$/gm)].map((match) => match[1]);
    expect(printed).toEqual(promised);
  },
);

it('links to files that exist', () => {
  const broken = pages().flatMap((page) =>
    [...readFileSync(join(root, page), 'utf8').matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)]
      .map(([, target = '']) => target)
      .filter((target) => !existsSync(join(root, dirname(page), target)))
      .map((target) => `${page}: ${target}`),
  );
  expect(broken).toEqual([]);
});

it('has policy files that can be read', async () => {
  const files = pages().flatMap((page) => [
    ...readFileSync(join(root, page), 'utf8').matchAll(/^```yaml\n(.*?)^```$/gms),
  ]);
  expect(files.length).toBeGreaterThan(0);
  for (const [, text = ''] of files) {
    const { policies } = await readPolicyDocument(text, 'rate-limits.yaml', {});
    expect(policies).toHaveProperty('api', expect.objectContaining({ limit: '1000', window: '1m' }));
  }
});
