import type { MaybePromise } from '../core/maybe-promise.js';

/**
 * A package that is loaded when it is first asked for. Whoever asks is in a call that the package itself has brought,
 * so it is installed.
 */
export function lazyPeer<T>(load: () => Promise<unknown>): () => MaybePromise<T> {
  let loaded: MaybePromise<T> | undefined;
  return () => {
    loaded ??= (load() as Promise<T>).then((peer) => (loaded = peer));
    return loaded;
  };
}
