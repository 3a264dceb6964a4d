import { LimiterEngine } from '../../lib/core/limiter-engine.js';
import type { EngineOptions } from '../../lib/core/engine-options.js';
import type { PolicyOptions } from '../../lib/core/policy.js';
import { engineParts } from '../../lib/engine-parts.js';

/** An engine as the module makes one, without the module. */
export function engineOf(options: EngineOptions, policies: Record<string, PolicyOptions>): LimiterEngine {
  return new LimiterEngine(
    engineParts(
      options,
      () => {},
      (registry) => {
        for (const [name, policy] of Object.entries(policies)) registry.define(name, policy, name);
      },
    ),
  );
}
