import type { CallContext } from '../core/call-context.js';
import { textOf } from './call-subject.js';

/** The default of `userOf`: what authentication guards usually put on the request. */
export function userOfRequest({ request }: CallContext): string | undefined {
  const user = (request as { user?: { id?: unknown; sub?: unknown } | null } | undefined)?.user;
  return textOf(user?.id) ?? textOf(user?.sub);
}
