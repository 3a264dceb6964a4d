import { createHash } from 'node:crypto';
import type { Algorithm } from '../../core/algorithm.js';
import { RateLimitConfigError } from '../../core/errors.js';
import { LUA_LOG, LUA_SCOPE, luaOf } from './lua-parts.js';
import { LUA_MAIN, LUA_PRELUDE } from './lua-program.js';
import { LUA_REGISTERS } from './lua-registers.js';
import { LUA_SINGLE_CHARGE } from './lua-single-charge.js';

/** A script as Redis knows it. */
export interface Script {
  readonly source: string;
  readonly sha: string;
}

/**
 * The one script that does everything, for the algorithms seen so far. Built-in ones are there from the beginning; one
 * of a user's own makes a longer script when it is first used.
 */
export class UniversalScript {
  readonly #indexes = new Map<Algorithm, number>();
  #script: Script | undefined;

  constructor(algorithms: Iterable<Algorithm>) {
    for (const algorithm of algorithms) this.indexOf(algorithm);
  }

  /**
   * The algorithm's number within {@link current}, from 1 on.
   * @throws RateLimitConfigError with `RL_ALGORITHM_WITHOUT_SCRIPT`
   */
  indexOf(algorithm: Algorithm): number {
    const known = this.#indexes.get(algorithm);
    if (known !== undefined) return known;
    if (algorithm.lua === undefined) {
      throw new RateLimitConfigError({
        code: 'RL_ALGORITHM_WITHOUT_SCRIPT',
        path: 'algorithm',
        expected: 'an algorithm with `lua`, which the Redis driver needs',
        received: algorithm.name,
      });
    }
    const index = this.#indexes.size + 1;
    this.#indexes.set(algorithm, index);
    this.#script = undefined;
    return index;
  }

  get current(): Script {
    return (this.#script ??= scriptOf([...this.#indexes.keys()]));
  }
}

function scriptOf(algorithms: readonly Algorithm[]): Script {
  const source = [
    LUA_SCOPE,
    LUA_PRELUDE,
    luaOf(algorithms),
    LUA_REGISTERS,
    LUA_SINGLE_CHARGE,
    LUA_LOG,
    LUA_MAIN,
  ].join('\n');
  return { source, sha: createHash('sha1').update(source).digest('hex') };
}
