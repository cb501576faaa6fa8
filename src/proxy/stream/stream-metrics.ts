// The metrics of the filters, in one place so that their names can be read off.
import { Counter, type Registry } from "../../base/metrics.ts";
import type { GroupResource } from "../session/session.ts";

export interface StreamMetrics {
  /** Watch events by what was done with them: forwarded, dropped, held (counted again when it is decided), left-out. */
  readonly watchEvents: Counter<"resource" | "decision">;
  readonly pushdown: Counter<"plan">;
  readonly filteredBytes: Counter;
}

export type EventDecision = "forwarded" | "dropped" | "held" | "left-out";

export function createStreamMetrics(registry: Registry): StreamMetrics {
  const registers = [registry];
  return {
    watchEvents: new Counter({
      name: "ctrlmesh_proxy_watch_events_total",
      help: "Events of filtered watches, by what was done with them.",
      labelNames: ["resource", "decision"],
      registers,
    }),
    pushdown: new Counter({
      name: "ctrlmesh_proxy_pushdown_total",
      help: "Narrowed lists and watches, by the part of the rule that the API server was asked to filter.",
      labelNames: ["plan"],
      registers,
    }),
    filteredBytes: new Counter({
      name: "ctrlmesh_proxy_filtered_bytes_total",
      help: "Bytes of lists and watches that the proxy took out.",
      registers,
    }),
  };
}

/** pods, deployments.apps */
export function resourceLabel({ group, resource }: GroupResource): string {
  return group === "" ? resource : `${resource}.${group}`;
}
