export {
  RateLimitHealthIndicator,
  type RateLimitHealth,
  type RateLimitHealthOptions,
} from './rate-limit.health.js';
