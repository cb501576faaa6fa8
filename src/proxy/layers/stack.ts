// The order of the layers, stated once. Each reads or changes the call on its way in and the reply on its way out; none
// writes an error response but `rescue`. Made in app.ts, called by the server for every request and upgrade.
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { AccessLog } from "../access-log.ts";
import type { Upstream } from "../api-server/upstream.ts";
import type { Handler, Layer, RawHandler } from "../http/handler.ts";
import { type LayerName, LayerTiming, timed } from "../http/layer-timing.ts";
import type { ProxyMetrics } from "../metrics.ts";
import type { Session } from "../session/session.ts";
import { caller } from "./caller.ts";
import { observe } from "./observe.ts";
import { requestInfo } from "./request-info.ts";
import { requireSnapshot } from "./require-snapshot.ts";
import { rescue } from "./rescue.ts";
import { strip } from "./strip.ts";
import { upstreamHandler } from "./upstream.ts";

export interface PipelineDeps {
  readonly session: Session;
  readonly upstream: Pick<Upstream, "send">;
  readonly election: Layer;
  readonly isolate: Layer;
  readonly lockGate: Layer;
  readonly metrics: ProxyMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  readonly accessLog: AccessLog;
}

/** One call in so many is measured layer by layer. */
const MEASURED_ONE_IN = 64;

/** Puts the layers together, outermost first. */
export function createPipeline(deps: PipelineDeps): RawHandler {
  const { clock } = deps;
  // Outermost, so that whatever fails inside is answered as a Status.
  const rescued = rescue(deps.log);
  // Before everything that may refuse, so that refusals are counted and timed like answers.
  const observed = observe(deps);
  // The same layers twice: the way that most calls take has no clock in it.
  const inner = innerPipeline(deps, (_name, handler) => handler);
  const measured = innerPipeline(deps, timed);
  let calls = 0;
  const sampled: RawHandler = (call) => {
    if (calls++ % MEASURED_ONE_IN !== 0) return inner(call);
    call.record.timing = new LayerTiming(clock);
    return measured(call);
  };
  return rescued(observed(sampled));
}

type Measure = (name: LayerName, handler: Handler) => Handler;

function innerPipeline(deps: PipelineDeps, measure: Measure): RawHandler {
  // (requestInfo) What cannot be read with certainty is refused before anybody decides about it.
  // Before all decisions: without routes nothing may pass, not even what needs none.
  const ready = requireSnapshot(deps.session);
  // Before the decisions that depend on who asks; what it says of the caller holds for all requests that follow from this one.
  const who = caller(deps);
  // Outside of what filters and renames, so that it works on what the operator will get.
  const stripping = strip({ session: deps.session, stripped: deps.metrics.strippedBytes });
  // Renames the lock before isolate sees it, and marks its calls, which isolate must neither narrow nor refuse.
  const { election } = deps;
  // Behind all that changes or filters, so that nothing widens what it has narrowed.
  const { isolate } = deps;
  // Next to the wire: a write may have waited in isolate, and the lock may have got another name meanwhile.
  const { lockGate } = deps;
  const upstream = measure("upstream", upstreamHandler(deps.upstream));
  const decided = measure("election", election(measure("isolate", isolate(lockGate(upstream)))));
  return requestInfo(ready(measure("caller", who(stripping(decided)))));
}
