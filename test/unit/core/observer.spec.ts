import {
  limiterBuilder,
  MemoryDriver,
  RateLimiterService,
  type DecisionEvent,
  type ObservedLimiter,
  type RateLimitObserver,
} from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import type { Diagnostic } from '../../../lib/core/diagnostics.js';
import { ObserverHub } from '../../../lib/core/observer.js';
import { engineOf } from '../../support/engine.js';
import { failing, wrapped } from '../../support/wrapped-driver.js';

const FIXED = { window: '1m', algorithm: 'fixed-window' } as const;

let events: DecisionEvent[];
let watching: RateLimitObserver;

beforeEach(() => {
  events = [];
  watching = { decision: (event) => void events.push(event) };
});

describe('decisions', () => {
  it('are timed only while an observer wants it', async () => {
    const timing: RateLimitObserver = { decision() {}, timesDecisions: true };
    const engine = engineOf({ observers: [watching] }, { api: { limit: 9, ...FIXED } });
    const service = new RateLimiterService(engine);
    const limiter = service.limiter('api');
    const ask = async () => {
      events.length = 0;
      await limiter.consume();
      limiter.consumeSync();
      limiter.tryAcquireSync();
      await service.consumeAll([
        { policy: 'api', subject: 'a' },
        { policy: 'api', subject: 'b' },
      ]);
      return events.map(({ durationMs }) => durationMs);
    };
    expect(await ask()).toEqual(Array.from({ length: 5 }, () => undefined));
    const stop = service.observe(timing);
    for (const durationMs of await ask()) {
      expect(durationMs).toBeGreaterThan(0);
      expect(durationMs).toBeLessThan(1_000);
    }
    stop();
    expect(await ask()).toEqual(Array.from({ length: 5 }, () => undefined));
    await service.close();
  });

  it('are not timed for an observer that does not listen to them', () => {
    const hub = new ObserverHub(() => {}, [{ timesDecisions: true }]);
    expect([hub.listensToDecisions, hub.timesDecisions]).toEqual([false, false]);
  });

  it('leave the fast path alone once nobody listens any more', () => {
    const engine = engineOf({}, { api: { limit: 1, ...FIXED } });
    expect(engine.synchronousFastPath).toBeDefined();
    const stop = engine.observe(watching);
    expect(engine.synchronousFastPath).toBeUndefined();
    stop();
    expect(engine.synchronousFastPath).toBeDefined();
  });

  it('are told with the quota of the subject', async () => {
    const engine = engineOf({ observers: [watching] }, { api: { limit: 1, ...FIXED } });
    engine.useResolver({ resolve: () => [{ limit: 7 }] });
    await engine.charge(engine.slot('api'), 'ann');
    expect(events).toMatchObject([{ quota: { limit: 7 }, policy: { limit: 1 }, outcome: 'allowed' }]);
    expect(events[0]!.call).toBeUndefined();
  });

  it('are told where the policy answered for a store that could not', async () => {
    const away = wrapped(new MemoryDriver(), failing(new Error('away'), 'decide'));
    const engine = engineOf(
      { driver: away, observers: [{ ...watching, timesDecisions: true }] },
      {
        open: { limit: 1, ...FIXED, onUnavailable: 'allow' },
        shut: { limit: 1, ...FIXED, onUnavailable: 'deny' },
        shadow: { limit: 1, ...FIXED, onUnavailable: 'deny', mode: 'shadow' },
      },
    );
    for (const name of ['open', 'shut', 'shadow']) await engine.charge(engine.slot(name));
    expect(events.map(({ outcome }) => outcome)).toEqual(['allowed', 'denied', 'shadow-denied']);
    for (const event of events) {
      expect(event).toMatchObject({ storeFailed: true, verdict: { servedBy: 'fallback' } });
      expect(event.durationMs).toBeGreaterThan(0);
    }
  });
});

describe('an observer', () => {
  it('is shown the limiter before anything else, once, whenever it comes', async () => {
    const shown: ObservedLimiter[] = [];
    const early: RateLimitObserver = { attached: (limiter) => void shown.push(limiter) };
    const engine = engineOf({ observers: [early] }, { api: { limit: 1, ...FIXED } });
    const service = new RateLimiterService(engine);
    const stop = service.observe({ attached: (limiter) => void shown.push(limiter) });
    service.observe(early);
    expect(shown).toHaveLength(2);
    expect(shown[1]!.status()).toMatchObject({ driver: 'memory' });
    expect(shown[1]!.policies().map(({ name }) => name)).toEqual(['api']);
    stop();
    stop();
    await service.close();
  });

  it('is not told twice where it is added twice, and nothing after it was removed', async () => {
    const limiter = limiterBuilder().observer(watching).observer(watching).clock(new ManualClock()).build();
    await limiter.consume();
    expect(events).toHaveLength(1);
    const engine = engineOf({}, { api: { limit: 1, ...FIXED } });
    const stop = engine.observe(watching);
    engine.observe(watching);
    stop();
    await engine.charge(engine.slot('api'));
    expect(events).toHaveLength(1);
    await limiter.close();
  });

  it.each(
    (['attached', 'decision', 'policyChange'] as const).flatMap((kind) => [
      [kind, new Error('broken'), 'broken'] as const,
      [kind, Object.create(null) as unknown, 'an object'] as const,
    ]),
  )('harms nobody whose %s() throws', async (kind, thrown, words) => {
    const told: Diagnostic[] = [];
    const broken = {
      [kind]() {
        throw thrown;
      },
    };
    const hub = new ObserverHub((diagnostic) => void told.push(diagnostic), [broken, watching]);
    hub.watch({ status: () => ({}) as never, policies: () => [] });
    if (kind !== 'attached') hub.emit(kind, {} as never);
    expect(told).toEqual([
      { code: 'RL_OBSERVER_FAILED', message: `an observer's ${kind}() failed: ${words}` },
    ]);
    expect(events).toHaveLength(kind === 'decision' ? 1 : 0);
  });
});
