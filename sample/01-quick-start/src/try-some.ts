import type { RateLimiterStatus } from 'nestjs-distlimit';

/** Three commands to try, and what each shows. They need no shell loop: curl counts through `[1-4]` itself. */
export function trySome(port: number, { driver, breaker }: RateLimiterStatus): string {
  const url = `http://localhost:${port}`;
  return `
Listening on ${url}. ${whereCounted(driver, breaker)}
Try these in another terminal:

  curl -i ${url}/cats
    200, and how much is left: the headers RateLimit-Policy and RateLimit

  curl -s -w " %{http_code}\\n" "${url}/cats/search?try=[1-4]"
    200 three times, then 429: the route's own limit is 3 in 10 seconds

  curl -s -w " %{http_code}\\n" -X POST "${url}/login?try=[1-4]"
    401 three times, then 429: after three failed logins the address is blocked for 2 minutes
`;
}

function whereCounted(driver: string, breaker: string | null): string {
  if (driver === 'memory') return 'Counters are in memory; with REDIS_URL they are in Redis.';
  if (breaker === 'closed') return 'Counters are in Redis (REDIS_URL).';
  return 'Redis (REDIS_URL) does not answer: until it does, counters are in memory.';
}
