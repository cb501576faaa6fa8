// The dependencies of the isolate layer, for tests. Missing ones get defaults.
import type { Clock } from "../../src/base/clock.ts";
import { silentLogger } from "../../src/base/log.ts";
import { createRegistry, type Registry } from "../../src/base/metrics.ts";
import { createMoveLog } from "../../src/mesh/moves/move-log.ts";
import type { ListChoice } from "../../src/mesh/ownership/plan-lists.ts";
import { createServerFeatures, type ServerFeatures } from "../../src/proxy/api-server/discovery.ts";
import { createStreamMetrics } from "../../src/proxy/filter/stream-metrics.ts";
import type { IsolateDeps } from "../../src/proxy/outbound/isolate/isolate.ts";
import { createPlanLog } from "../../src/proxy/outbound/lists/plan-log.ts";
import { NO_MEMORY } from "../../src/proxy/session/memory.ts";
import type { Session } from "../../src/proxy/session/session.ts";

export interface IsolateOptions extends Partial<IsolateDeps> {
  readonly session: Session;
  readonly clock: Clock;
  readonly registry?: Registry;
}

/** Server features for tests of the one list over all namespaces: no list is answered by namespace. */
export function oneListOnly(clock: Clock): ServerFeatures {
  const features = createServerFeatures(clock);
  return { ...features, lackOf: (target, kind) => (kind === "namespaces" ? "refused" : features.lackOf(target, kind)) };
}

/** Chooses lists by namespace wherever they are possible. */
export function alwaysByNamespace(): ListChoice {
  return { way: "by-namespace", why: "cheaper", oneListMs: 2, byNamespaceMs: 1 };
}

/** @param options the parts that the test inspects; all resources are namespaced by default */
export function isolateDeps({ registry = createRegistry("proxy", "test"), ...options }: IsolateOptions): IsolateDeps {
  const { clock, session } = options;
  return {
    discovery: { scopeOf: async () => "namespaced" },
    features: createServerFeatures(clock),
    metrics: createStreamMetrics(registry),
    plans: createPlanLog(clock),
    random: () => 0,
    moves: createMoveLog(session, NO_MEMORY.moves),
    log: silentLogger(),
    podName: "app-0",
    ...options,
  };
}
