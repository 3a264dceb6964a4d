import { ALGORITHMS } from './algorithms/index.js';
import { monotonicClock } from './core/clock.js';
import type { DiagnosticSink } from './core/diagnostics.js';
import type { Driver } from './core/driver.js';
import type { EngineOptions } from './core/engine-options.js';
import { notAvailable } from './core/errors.js';
import { LimiterEngine, type LimiterEngineParts } from './core/limiter-engine.js';
import { ObserverHub } from './core/observer.js';
import { PolicyRegistry } from './core/policy-registry.js';

import { MemoryDriver, type MemoryDriverOptions } from './drivers/memory/memory-driver.js';

/** Puts the parts of an engine together: the one place that knows which algorithms and drivers there are. */
export function engineParts(options: EngineOptions, report: DiagnosticSink): LimiterEngineParts {
  const observers = new ObserverHub(options.observers);
  const surroundings = { algorithms: ALGORITHMS, report };
  return {
    registry: new PolicyRegistry(surroundings),
    surroundings,
    driver: openDriver(options, observers),
    ownsDriver: typeof options.driver !== 'object',
    clock: options.clock ?? monotonicClock,
    observers,
    enabled: options.enabled ?? true,
    hashKeys: options.hashKeys,
  };
}

export function createEngine(options: EngineOptions, report: DiagnosticSink) {
  const parts = engineParts(options, report);
  return { engine: new LimiterEngine(parts), registry: parts.registry };
}

function openDriver({ driver = 'memory', memory, clock }: EngineOptions, observers: ObserverHub): Driver {
  if (typeof driver === 'object') return driver;
  if (driver === 'memory') {
    const options: MemoryDriverOptions = {
      ...memory,
      onEviction: (event) => observers.emit('eviction', event),
    };
    return new MemoryDriver(clock === undefined ? options : { ...options, clock });
  }
  throw notAvailable('driver', "'memory' or a Driver of your own: this version has no Redis driver", driver);
}
