import type { CallContext } from '../core/call-context.js';
import type { ClientAddress } from '../http/client-address.js';

/** How a call's user and address are found. */
export interface CallSources {
  readonly userOf: (call: CallContext) => string | undefined;
  /** `adapter`: what the framework made of the request. */
  readonly clientAddress: ClientAddress | 'adapter';
  /** The same for what no framework has made a request of: sockets and their handshakes. */
  readonly socketAddress: ClientAddress;
  readonly normalize: (address: string) => string | undefined;
}
