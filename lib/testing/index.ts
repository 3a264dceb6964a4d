export { ManualClock } from './manual-clock.js';
export { disableRateLimits } from './disable-rate-limits.js';
