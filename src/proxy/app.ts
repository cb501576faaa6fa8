// The proxy as it runs in a pod: assembled around the real session and its layers, started in groups and drained in
// reverse. Called by main with a checked configuration.
import { systemClock, systemRandom } from "../base/clock.ts";
import { type Runnable, runGroups } from "../base/lifecycle.ts";
import { createLogger } from "../base/log.ts";
import { createRegistry } from "../base/metrics.ts";
import { VERSION } from "../base/version.ts";
import { loadMeshContract } from "../wire/load-proto.ts";
import { createProxy, type ReadyInfo } from "./assemble.ts";
import type { ProxyConfig } from "./config.ts";
import { createIdentity } from "./identity/create-identity.ts";
import { election } from "./pipeline/election/election.ts";
import { createLockGate } from "./pipeline/election/lock-gate.ts";
import type { Layer } from "./pipeline/handler.ts";
import { type IsolateDeps, isolate } from "./pipeline/isolate/isolate.ts";
import { keepOut, ownsNothing } from "./pipeline/isolate/keep-out.ts";
import { createPlanLog } from "./pipeline/isolate/plan-log.ts";
import { createSession } from "./session/create-session.ts";
import { createStreamMetrics } from "./stream/stream-metrics.ts";
import { createServerFeatures } from "./upstream/server-features.ts";

export interface RunProxyOptions {
  /** Starts the drain. */
  readonly signal: AbortSignal;
  /** Called once everything is started. */
  readonly onReady: (ready: ReadyInfo) => void;
}

/** What the parts may take beyond their own drain before the process gives up. */
const DRAIN_MARGIN_MS = 2_000;

/** Runs until the signal fires and everything is drained. */
export async function runProxy(config: ProxyConfig, { signal, onReady }: RunProxyOptions): Promise<void> {
  const log = createLogger({ name: "ctrlmesh-proxy", level: config.logLevel });
  const registry = createRegistry("proxy", VERSION);
  const [clock, random] = [systemClock, systemRandom];
  const contract = loadMeshContract();
  const { access, certificate } = createIdentity({ config, service: contract.service, registry, clock, random, log });
  const session = createSession({ config, access, contract, log, clock, random, registry, proxyVersion: VERSION });
  const plans = createPlanLog(clock);
  const gate = createLockGate(clock, session);
  const proxy = createProxy(config, {
    session,
    certificate,
    layers: ({ discovery }) => ({
      election: election({ session, clock, log, gate }),
      isolate: isolateByCaller({ session, discovery, clock, random, registry, plans, gate }),
    }),
    plans,
    registry,
    clock,
    random,
    log,
  });
  const announce: Runnable = {
    name: "ready",
    async start() {
      const ready = proxy.ready();
      log.info({ ...ready, manager: config.manager, apiServer: config.apiServer }, "serving");
      onReady(ready);
    },
    stop: async () => undefined,
  };
  await runGroups([...proxy.groups, [announce]], { signal, log, drainMs: config.drainMs + DRAIN_MARGIN_MS });
}

// Callers that this subset does not serve go through a layer of their own, which owns nothing.
function isolateByCaller(deps: IsolateDeps): Layer {
  const shared = { ...deps, metrics: createStreamMetrics(deps.registry), features: createServerFeatures(deps.clock) };
  return keepOut({ served: isolate(shared), nothing: isolate({ ...shared, session: ownsNothing(deps.session) }) });
}
