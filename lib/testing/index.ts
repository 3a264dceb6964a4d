export { ManualClock } from './manual-clock.js';
export { disableRateLimits } from './disable-rate-limits.js';
export { describeAlgorithm, type AlgorithmSuiteOptions } from './describe-algorithm.js';
export { describeDriver, type DriverSuiteOptions } from './describe-driver.js';
export type { TestFramework } from './test-framework.js';
