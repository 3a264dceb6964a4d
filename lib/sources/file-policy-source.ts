import { unwatchFile, watchFile } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { RateLimitConfigError } from '../core/errors.js';
import type {
  OpenPolicySource,
  PolicySet,
  PolicySource,
  PolicySourceContext,
} from '../core/policy-source.js';
import { validate, wholeNumber } from '../core/validation.js';
import { startBackgroundTimer } from '../core/background-timer.js';
import { untilQuiet } from './until-quiet.js';
import { MOST_BYTES, readPolicyDocument, type PolicyDocument } from './policy-document.js';

export interface FilePolicySourceOptions {
  /**
   * How often the file is looked at, in whole milliseconds ≥ 10; default 500. Of several sources of a process that read one
   * file the first one's holds: Node looks for all of them.
   */
  readonly pollIntervalMs?: number;
}

const DEFAULT_POLL_MS = 500;

/**
 * Policies from a YAML or JSON file, which is read again when it changes: when it is written, replaced, or a symbolic link
 * to it is set anew. A version that is wrong changes nothing, and is reported with line and column.
 * @param path of the file, from the working directory on
 * @throws RateLimitConfigError where an option is wrong; the start fails with one where the file is missing or wrong
 */
export function fileSource(path: string, options: FilePolicySourceOptions = {}): PolicySource {
  if (typeof path !== 'string' || path === '') {
    throw new RateLimitConfigError({
      code: 'RL_INVALID_OPTION',
      path: 'fileSource.path',
      expected: 'the path of a file',
      received: path,
    });
  }
  const pollMs = validate(
    wholeNumber('RL_INVALID_OPTION', 10),
    options.pollIntervalMs ?? DEFAULT_POLL_MS,
    'fileSource.pollIntervalMs',
  );
  return {
    name: `fileSource('${path}')`,
    async open(context) {
      const source = new OpenFileSource(resolve(path), pollMs, context);
      await source.start(path);
      return source;
    },
  };
}

class OpenFileSource implements OpenPolicySource {
  readonly #file: string;
  readonly #pollMs: number;
  readonly #context: PolicySourceContext;
  #text = '';
  #document: PolicyDocument = { policies: {}, where: () => '' };
  #isAway = false;
  #isClosed = false;

  constructor(file: string, pollMs: number, context: PolicySourceContext) {
    this.#file = file;
    this.#pollMs = pollMs;
    this.#context = context;
  }

  get policies(): PolicySet {
    return this.#document.policies;
  }

  where(policy: string, field?: string): string {
    return this.#document.where(policy, field);
  }

  /** @param given the path as it was given */
  async start(given: string): Promise<void> {
    // First: what is written while it is being read must not be missed.
    watchFile(this.#file, { interval: this.#pollMs, persistent: false }, this.#onChange);
    try {
      this.#text = await this.#read();
      this.#document = await this.#parse(this.#text);
    } catch (error) {
      this.close();
      if (error instanceof RateLimitConfigError) throw error;
      throw new RateLimitConfigError({
        code: 'RL_INVALID_FILE',
        path: `fileSource('${given}')`,
        expected: 'a file that can be read',
        received: (error as Error).message,
      });
    }
  }

  close(): void {
    this.#isClosed = true;
    unwatchFile(this.#file, this.#onChange);
  }

  readonly #onChange = untilQuiet(() => this.#reload());

  async #reload(): Promise<void> {
    let problem: Error | undefined;
    // Somebody may be writing: what is wrong, or not there, has a moment to become right.
    for (let attempt = 0; attempt < 2; attempt++) {
      if (attempt > 0)
        await new Promise<void>((done) => void startBackgroundTimer(undefined, done, this.#pollMs));
      if (this.#isClosed) return;
      try {
        const text = await this.#read();
        this.#isAway = false;
        if (text === this.#text) return;
        const document = await this.#parse(text);
        this.#text = text;
        if (this.#isClosed) return;
        this.#document = document;
        return this.#context.changed(document.policies);
      } catch (error) {
        problem = error as Error;
      }
    }
    if (this.#isClosed) return;
    this.#tell(problem!);
    // Nobody tells when it can be read: the file may be as it was.
    if (!(problem instanceof RateLimitConfigError)) {
      startBackgroundTimer(undefined, this.#onChange, this.#pollMs);
    }
  }

  #tell(problem: Error): void {
    if (problem instanceof RateLimitConfigError) {
      const message = `${basename(this.#file)}: what was there before stays: ${problem.message}`;
      return this.#context.report({ code: 'RL_SOURCE_REJECTED', message });
    }
    if (this.#isAway) return;
    this.#isAway = true;
    this.#context.report({
      code: 'RL_SOURCE_UNAVAILABLE',
      message: `${this.#file} can't be read, and its policies known last stay until it can: ${problem.message}`,
    });
  }

  async #read(): Promise<string> {
    const stats = await stat(this.#file);
    const { size } = stats;
    if (!stats.isFile()) {
      throw new RateLimitConfigError({
        code: 'RL_INVALID_FILE',
        path: this.#file,
        expected: 'a regular file',
        received: stats.isDirectory() ? 'a directory' : 'a pipe, socket or device',
      });
    }
    if (size > MOST_BYTES) {
      throw new RateLimitConfigError({
        code: 'RL_INVALID_FILE',
        path: this.#file,
        expected: `at most ${MOST_BYTES} bytes`,
        received: size,
      });
    }
    return readFile(this.#file, 'utf8');
  }

  #parse(text: string): Promise<PolicyDocument> {
    return readPolicyDocument(text, basename(this.#file), process.env);
  }
}
