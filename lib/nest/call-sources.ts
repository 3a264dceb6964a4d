import type { CallContext } from '../core/call-context.js';
import type { ClientAddress } from '../http/client-address.js';

/** How a call's user and address are found. */
export interface CallSources {
  readonly userOf: (call: CallContext) => string | undefined;
  /** Whether the framework says whose a request is, where it has made one. */
  readonly trustAdapter: boolean;
  readonly socketAddress: ClientAddress;
  readonly normalize: (address: string) => string | undefined;
}
