import { suspendEnforcement } from '../core/enforcement.js';

/**
 * Lets everything pass in this process, uncounted, until the returned function is called: guards, services, and limited
 * methods also on objects that Nest never made (`new Service()` in a unit test).
 */
export function disableRateLimits(): () => void {
  return suspendEnforcement();
}
