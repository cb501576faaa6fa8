// The proxy's handler of routes on a fake clock, with a file that the test brings.
import { silentLogger } from "../../src/base/log.ts";
import { Registry } from "../../src/base/metrics.ts";
import { createEnforcer } from "../../src/proxy/session/enforcer.ts";
import { createLastWrites } from "../../src/proxy/session/last-writes.ts";
import { createRouteHandler, type RouteHandlerDeps } from "../../src/proxy/session/route-handler.ts";
import { createSessionMetrics } from "../../src/proxy/session/session-metrics.ts";
import { createFakeClock } from "./fake-clock.ts";

export function startRouteHandler(file: Pick<RouteHandlerDeps["file"], "load" | "save">, clock = createFakeClock()) {
  const enforcer = createEnforcer();
  const lastWrites = createLastWrites(clock);
  const stop = new AbortController();
  const routeHandler = createRouteHandler({
    pod: { namespace: "shop", name: "shop-0", uid: "uid-1" },
    enforcer,
    lastWrites,
    file: { willChange: () => undefined, ...file },
    metrics: createSessionMetrics(new Registry()),
    clock,
    log: silentLogger(),
    signal: stop.signal,
  });
  return { clock, enforcer, lastWrites, routeHandler, stop };
}
