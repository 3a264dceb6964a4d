import { AsyncResource } from 'node:async_hooks';

/**
 * Runs `work` in the asynchronous context of this module's loading instead of the caller's. A timer started inside
 * a request would otherwise keep everything in that request's `AsyncLocalStorage` alive for as long as it runs.
 */
export const outsideAnyCall: <T>(work: () => T) => T = AsyncResource.bind(<T>(work: () => T): T => work());
