// The proxy as it runs in a pod: assembled around the real session and its layers, started in groups and
// drained in reverse.
import { systemClock, systemRandom } from "../base/clock.ts";
import { type Runnable, runGroups } from "../base/lifecycle.ts";
import { createLogger } from "../base/log.ts";
import { createRegistry } from "../base/metrics.ts";
import { podUri } from "../base/pod-uri.ts";
import { VERSION } from "../base/version.ts";
import { createProxy, type ReadyInfo } from "./assemble.ts";
import type { ProxyConfig } from "./config.ts";
import { createIdentity } from "./identity/create-identity.ts";
import { createSession } from "./session/create-session.ts";
import { createStateFolder } from "./state/state-folder.ts";

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
  const state = createStateFolder(config.dataDir, log);
  const pod = { namespace: config.podNamespace, name: config.podName, uid: config.podUid };
  const clientName = config.webhooks && podUri(pod);
  const { access, certificate, peerTrust: trust } = createIdentity({ config, state, clientName, registry, clock, random, log });
  const session = createSession({ config, state, access, log, clock, random, registry, proxyVersion: VERSION });
  const proxy = createProxy(config, { session, certificate, trust, registry, clock, random, log });
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
