import 'reflect-metadata';
import { redisForSample } from '../../support/redis-for-samples.js';
import { start } from './start.js';

const redis = await redisForSample();
const gateway = await start(Number(process.env.PORT ?? 3000), { redis: redis.url });
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void gateway.close().finally(() => process.exit(0)));
}

const { url } = gateway;
const curl = 'curl -s -o /dev/null -w "%{http_code}\\n"';
console.log(`
The load balancer listens on ${url}, the gateway behind it. ${redis.where}
Try these in another terminal, within a minute:

  curl -i ${url}/orders/42
    200 from a service, with RateLimit headers: 4 of 5 are left without a key

  ${curl} "${url}/stock?try=[1-5]"
    200 four times, then 429

  ${curl} -H "x-forwarded-for: 198.51.100.7" ${url}/stock
  ${curl} -H "x-api-key: made-up" ${url}/stock
    429 and 429: neither a made-up address nor a made-up key is a new quota

  ${curl} -H "x-api-key: key-of-fred" "${url}/stock?try=[1-11]"
    200 ten times, then 429: Fred's plan is free. key-of-pia has 100 a minute, key-of-emma 1,000
`);
