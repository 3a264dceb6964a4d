import { AsyncLocalStorage } from 'node:async_hooks';
import { limiterBuilder, MemoryDriver, type EvictionEvent, type Limiter } from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import { FNV_OFFSET_BASIS, fnv1a32 } from '../../../lib/drivers/memory/fnv1a.js';

const opened: Limiter[] = [];

afterEach(async () => {
  for (const limiter of opened.splice(0)) await limiter.close();
});

function build(configure: (builder: ReturnType<typeof limiterBuilder>) => unknown): Limiter {
  const builder = limiterBuilder();
  configure(builder);
  const limiter = builder.build();
  opened.push(limiter);
  return limiter;
}

describe('maxKeys', () => {
  it('bounds a flood of a million keys', () => {
    const limiter = build((b) => b.limit(5).window('1h').memory({ maxKeys: 100_000 }));
    for (let i = 0; i < 1_000_000; i++) limiter.tryAcquireSync(`user:${i}`);
    expect(limiter.status()).toMatchObject({ keys: 100_000, evictions: 900_000 });
  });

  it('gives up what is nearest to expiry, and tells of it', async () => {
    const clock = new ManualClock();
    const evicted: EvictionEvent[] = [];
    const limiter = build((b) =>
      b
        .limit(5)
        .window('1m')
        .algorithm('token-bucket')
        .clock(clock)
        .memory({ maxKeys: 100 })
        .observer({ eviction: (event) => void evicted.push(event) }),
    );
    for (let i = 0; i < 100; i++) {
      await limiter.consume(`user:${i}`);
      clock.advance(1);
    }
    for (let i = 100; i < 110; i++) await limiter.consume(`user:${i}`);
    expect(evicted.map(({ subject }) => subject)).toEqual(Array.from({ length: 10 }, (_, i) => `user:${i}`));
    expect(evicted[0]).toMatchObject({ policy: 'default', remainingMs: 60_000 - 100 });
    expect(limiter.status()).toMatchObject({ keys: 100, evictions: 10 });
  });

  it('counts blocks too', async () => {
    const limiter = build((b) => b.limit(0).block('1h').memory({ maxKeys: 50 }));
    for (let i = 0; i < 1_000; i++) await limiter.consume(`user:${i}`);
    expect(limiter.status().keys).toBe(50);
  });
});

describe('a long pause', () => {
  it('leaves the store empty in real time, too', async () => {
    const limiter = build((b) =>
      b.limit(5).window('50ms').algorithm('fixed-window').memory({ sweepIntervalMs: 10 }),
    );
    for (let i = 0; i < 10_000; i++) limiter.tryAcquireSync(`user:${i}`);
    expect(limiter.status().keys).toBeGreaterThan(0);
    const deadline = Date.now() + 5_000;
    while (limiter.status().keys > 0 && Date.now() < deadline)
      await new Promise((r) => void setTimeout(r, 10));
    expect(limiter.status().keys).toBe(0);
  });
});

describe('timers', () => {
  it('do not grow with keys', async () => {
    const limiter = build((b) => b.limit(5).window('1h').block('1h'));
    await limiter.consume('first');
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    const before = timers();
    for (let i = 0; i < 1_000; i++) await limiter.consume(`user:${i}`);
    for (let i = 0; i < 1_000; i++) await limiter.block(`user:${i}`, '1h');
    expect(timers()).toBe(before);
  });

  it('keep no process alive', async () => {
    const alive = () =>
      process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout' || kind === 'Immediate').length;
    const before = alive();
    const limiter = build((b) => b.limit(1).window('1h').memory({ sweepIntervalMs: 10 }));
    limiter.tryAcquireSync('a');
    await limiter.consume('b');
    expect(alive()).toBe(before);
  });
});

describe('what surrounds a call', () => {
  it('can be collected after it', async () => {
    const { setFlagsFromString } = await import('node:v8');
    const { runInNewContext } = await import('node:vm');
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const storage = new AsyncLocalStorage<object>();
    let limiter!: Limiter;
    const watched = await (async () => {
      const big = { bytes: new Uint8Array(1_000_000) };
      await storage.run(big, async () => {
        limiter = build((b) => b.limit(1).window('1h').block('1h'));
        limiter.tryAcquireSync('a');
        await limiter.consume('a');
        await limiter.consume('a');
      });
      return new WeakRef(big);
    })();
    for (let i = 0; i < 20 && watched.deref() !== undefined; i++) {
      await new Promise((resolve) => void setTimeout(resolve, 5));
      collect();
    }
    expect(watched.deref()).toBeUndefined();
    expect(limiter.status().keys).toBe(2);
  });
});

describe('keys built to collide', () => {
  it('keep counters of their own', () => {
    const crafted = collidingTexts(8);
    expect(new Set(crafted.map((text) => fnv1a32(text))).size).toBe(1);
    const driver = new MemoryDriver({ hashStart: FNV_OFFSET_BASIS });
    const limiter = build((b) => b.limit(2).window('1h').driver(driver));
    for (let round = 0; round < 2; round++) {
      for (const text of crafted) expect(limiter.tryAcquireSync(text)).toBe(true);
    }
    for (const text of crafted) expect(limiter.tryAcquireSync(text)).toBe(false);
    expect(driver.status().keys).toBe(crafted.length);
  });
});

/** 2^blocks texts of one FNV-1a value: at each place either of two blocks that lead to the same state. */
function collidingTexts(blocks: number): string[] {
  let texts = [''];
  let start = FNV_OFFSET_BASIS;
  for (let block = 0; block < blocks; block++) {
    const seen = new Map<number, string>();
    for (let i = 0; ; i++) {
      const text = i.toString(36).padStart(6, '0');
      const hash = fnv1a32(text, start);
      const other = seen.get(hash);
      if (other === undefined) {
        seen.set(hash, text);
        continue;
      }
      texts = texts.flatMap((head) => [head + other, head + text]);
      start = hash;
      break;
    }
  }
  return texts;
}
