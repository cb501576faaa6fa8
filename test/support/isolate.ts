// What the isolate layer needs, in tests: everything that is not given is made anew.
import type { Clock } from "../../src/base/clock.ts";
import { createRegistry, type Registry } from "../../src/base/metrics.ts";
import { createServerFeatures } from "../../src/proxy/api-server/server-features.ts";
import { createStreamMetrics } from "../../src/proxy/filter/stream-metrics.ts";
import type { IsolateDeps } from "../../src/proxy/layers/isolate/isolate.ts";
import { createPlanLog } from "../../src/proxy/layers/isolate/plan-log.ts";
import type { Session } from "../../src/proxy/session/session.ts";

export interface IsolateOptions extends Partial<IsolateDeps> {
  readonly session: Session;
  readonly clock: Clock;
  readonly registry?: Registry;
}

/** @param options what a test looks at; all resources live in namespaces, unless they say otherwise */
export function isolateDeps({ registry = createRegistry("proxy", "test"), ...options }: IsolateOptions): IsolateDeps {
  const { clock } = options;
  return {
    discovery: { scopeOf: async () => "namespaced" },
    features: createServerFeatures(clock),
    metrics: createStreamMetrics(registry),
    plans: createPlanLog(clock),
    random: () => 0,
    ...options,
  };
}
