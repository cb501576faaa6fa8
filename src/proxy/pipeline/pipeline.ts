// The order of the layers, stated once. Each reads or changes the call on its way in and the reply on its way out; none
// writes an error response but `rescue`. Made in app.ts, called by the server for every request and upgrade.
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { ProxyMetrics } from "../metrics.ts";
import type { Session } from "../session/session.ts";
import type { Upstream } from "../upstream/upstream.ts";
import type { Layer, RawHandler } from "./handler.ts";
import { observe } from "./observe.ts";
import { requestInfo } from "./request-info.ts";
import { requireSnapshot } from "./require-snapshot.ts";
import { rescue } from "./rescue.ts";
import { upstreamHandler } from "./upstream.ts";

export interface PipelineDeps {
  readonly session: Session;
  readonly upstream: Pick<Upstream, "send">;
  readonly election: Layer;
  readonly isolate: Layer;
  readonly metrics: ProxyMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  /** Undefined turns the access log off. */
  readonly accessLog: Logger | undefined;
}

/** Puts the layers together, outermost first. */
export function createPipeline(deps: PipelineDeps): RawHandler {
  // Outermost, so that whatever fails inside is answered as a Status.
  const rescued = rescue(deps.log);
  // Before everything that may refuse, so that refusals are counted and timed like answers.
  const observed = observe(deps);
  // (requestInfo) What cannot be read with certainty is refused before anybody decides about it.
  // Before all decisions: without routes nothing may pass, not even what needs none.
  const ready = requireSnapshot(deps.session);
  // Renames the lock before isolate sees it, and marks its calls, which isolate must neither narrow nor refuse.
  const { election } = deps;
  // Last before the wire, so that no later layer can widen what it has narrowed.
  const { isolate } = deps;
  return rescued(observed(requestInfo(ready(election(isolate(upstreamHandler(deps.upstream)))))));
}
