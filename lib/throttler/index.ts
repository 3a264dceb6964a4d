export {
  DistlimitThrottlerStorage,
  type ThrottlerPolicyOptions,
  type ThrottlerStorageOptions,
} from './distlimit-throttler-storage.js';
