import { ALGORITHMS } from './algorithms/index.js';
import { monotonicClock } from './core/clock.js';
import { defined } from './core/defined.js';
import type { DiagnosticSink } from './core/diagnostics.js';
import type { Driver } from './core/driver.js';
import type { EngineOptions } from './core/engine-options.js';
import { RateLimitConfigError } from './core/errors.js';
import type { LimiterEngineParts } from './core/limiter-engine.js';
import { ObserverHub } from './core/observer.js';
import { PolicyChanges } from './core/policy-changes.js';
import { PolicyRegistry } from './core/policy-registry.js';
import { PolicySources } from './core/policy-sources.js';
import { HybridDriver } from './drivers/hybrid/hybrid-driver.js';
import { RedisDriver } from './drivers/redis/redis-driver.js';
import { MemoryDriver, type MemoryDriverOptions } from './drivers/memory/memory-driver.js';

/**
 * Puts the parts of an engine together: the one place that knows which algorithms and drivers there are.
 *
 * @param define the policies known by now: where one is wrong, the driver has not been opened yet
 * @param sources opened already
 */
export function engineParts(
  options: EngineOptions,
  report: DiagnosticSink,
  define: (registry: PolicyRegistry) => void,
  sources = new PolicySources([], report),
): LimiterEngineParts {
  const observers = new ObserverHub(report, options.observers);
  const surroundings = { algorithms: ALGORITHMS, report };
  const registry = new PolicyRegistry(surroundings, sources.layers);
  define(registry);
  registry.defineSourced();
  const changes = new PolicyChanges(registry, sources.layers, observers);
  sources.attach(changes);
  for (const name of withoutEffect(options, sources.layers.all.length > 0)) {
    const driver = driverOf(options);
    const which = typeof driver === 'object' ? 'a driver of your own' : `the ${driver} driver`;
    report({ code: 'RL_OPTION_HAS_NO_EFFECT', message: `${name} has no effect with ${which}` });
  }
  return {
    registry,
    surroundings,
    changes,
    sources,
    driver: openDriver(options, observers, report),
    ownsDriver: typeof options.driver !== 'object',
    clock: options.clock ?? monotonicClock,
    observers,
    enabled: options.enabled ?? true,
    hashKeys: options.hashKeys,
  };
}

/** Options that the driver has no use for, nor a source. */
function withoutEffect(options: EngineOptions, hasSources: boolean): string[] {
  const { memory, hybrid } = options;
  const { redis, prefix }: EngineOptions = hasSources ? {} : options;
  switch (driverOf(options)) {
    case 'memory':
      return named({ redis, prefix, hybrid });
    case 'redis':
      return named({ memory, hybrid });
    case 'hybrid':
      return [];
    default:
      return named({ redis, prefix, memory, hybrid });
  }
}

function named(options: Record<string, unknown>): string[] {
  return Object.keys(options).filter((name) => options[name] !== undefined);
}

/** `redis` alone asks for the driver that goes on without it. */
function driverOf({ driver, redis }: EngineOptions) {
  return driver ?? (redis === undefined ? 'memory' : 'hybrid');
}

function openDriver(options: EngineOptions, observers: ObserverHub, report: DiagnosticSink): Driver {
  const { redis, prefix, memory, hybrid, clock } = options;
  const driver = driverOf(options);
  if (typeof driver === 'object') return driver;
  if (driver === 'memory') {
    const bounds: MemoryDriverOptions = {
      ...memory,
      onEviction: (event) => observers.emit('eviction', event),
    };
    return new MemoryDriver(clock === undefined ? bounds : { ...bounds, clock });
  }
  if (redis === undefined) {
    throw new RateLimitConfigError({
      code: 'RL_INVALID_OPTION',
      path: 'redis',
      expected: `the address of a Redis: the driver '${driver}' needs one`,
      received: redis,
    });
  }
  const shared = { redis, ...defined({ prefix, clock }) };
  if (driver === 'redis') return new RedisDriver(shared);
  return new HybridDriver({
    ...hybrid,
    ...memory,
    ...shared,
    report,
    onBreakerChange: (event) => observers.emit('breakerChange', event),
    onEviction: (event) => observers.emit('eviction', event),
    onReconcile: (event) => observers.emit('reconcile', event),
    onError: (event) => observers.emit('driverError', event),
  });
}
