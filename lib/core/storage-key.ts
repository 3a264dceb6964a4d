import { boundSubject } from './subject.js';

/** What every key begins with, unless a prefix is given. */
export const DEFAULT_PREFIX = 'distlimit';

/** The layout of what is stored. Another layout gets another number, and so other keys. */
const VERSION = 'v1';
const BLOCK = 'block';

/** Lone surrogates too: as UTF-8 they would all be the same replacement character. */
const NEEDS_ESCAPE = /[%{}\u0000-\u001f\u007f-\u009f\u2028\u2029\p{Cs}]/u;
const ESCAPED = new RegExp(NEEDS_ESCAPE.source, 'gu');
const ESCAPED_IN_PART = /[%:{}\u0000-\u001f\u007f-\u009f\u2028\u2029\p{Cs}]/gu;

/** Where the counter of one subject under one policy stands, and where a block of it. */
export interface CounterKeys {
  readonly counter: string;
  readonly block: string;
}

/**
 * The keys of a store that is shared: `<prefix>:v1:{<subject>}:<policy>:<algorithm>`, and `…:block` for a block.
 *
 * The braces hold the subject alone, so that on a Redis cluster all policies of one subject share a slot and are decided
 * in one step. Users' text is escaped, so that nothing in it can end the braces, begin another part, or look like
 * another subject. The algorithm's name is in the key: a policy that changes its algorithm starts afresh.
 */
export class StorageKeys {
  readonly #prefix: string;
  /** What follows the subject, by policy and algorithm. */
  readonly #endings = new Map<string, Map<string, CounterKeys>>();

  constructor(prefix: string) {
    this.#prefix = `${prefix}:${VERSION}:`;
  }

  of(policy: string, algorithm: string, subject: string): CounterKeys {
    const { counter, block } = this.#endingsOf(policy, algorithm);
    const start = `${this.#prefix}{${hashTag(subject)}`;
    return { counter: start + counter, block: start + block };
  }

  /** A key, or channel, that is nobody's counter. */
  own(name: string): string {
    return this.#prefix + name;
  }

  #endingsOf(policy: string, algorithm: string): CounterKeys {
    let ofPolicy = this.#endings.get(policy);
    if (ofPolicy === undefined) this.#endings.set(policy, (ofPolicy = new Map()));
    let endings = ofPolicy.get(algorithm);
    if (endings === undefined) {
      const start = `}:${escapePart(policy)}:`;
      // An algorithm of a user's own may be called 'block': then its name is not left as it is.
      const last = algorithm === BLOCK ? '%62lock' : escapePart(algorithm);
      endings = { counter: start + last, block: start + BLOCK };
      ofPolicy.set(algorithm, endings);
    }
    return endings;
  }
}

/** What stands between the braces: it alone decides on which node of a cluster a key is. */
export function hashTag(subject: string): string {
  const text = boundSubject(subject);
  return NEEDS_ESCAPE.test(text) ? text.replace(ESCAPED, percentEncoded) : text;
}

function escapePart(text: string): string {
  return text.replace(ESCAPED_IN_PART, percentEncoded);
}

function percentEncoded(character: string): string {
  const code = character.charCodeAt(0);
  return code < 0x100 ? `%${code.toString(16).padStart(2, '0')}` : `%u${code.toString(16).padStart(4, '0')}`;
}
