// The metrics of the filters of lists and watches.
import { type CounterCell, createCounterCells } from "../../base/metric-cells.ts";
import { Counter, type Registry } from "../../base/metrics.ts";
import { rememberNames } from "../../base/remember.ts";
import { resourceName } from "../../kube/client/resource.ts";
import type { GroupResource } from "../../kube/types.ts";
import type { PlanName } from "../../mesh/ownership/plan-query.ts";

export type StreamMetrics = ReturnType<typeof createStreamMetrics>;

/** Counts of one plan: bytes read from the API server, bytes sent to the client, and objects dropped. */
export type PlanCounters = Readonly<Record<"read" | "sent" | "dropped", { inc(count?: number): void }>>;

/** A held event is counted again when it is shown or dropped. */
type CountedDecision = "forwarded" | "dropped" | "held" | "left-out";
export type EventCounters = Readonly<Record<CountedDecision, CounterCell>>;

export function createStreamMetrics(registry: Registry) {
  const registers = [registry];
  const bytes = new Counter({
    name: "ctrlmesh_proxy_pushdown_bytes_total",
    help: "Bytes of narrowed lists and watches by plan: read from the API server, and sent to the client. The difference is what proxy-side filtering dropped.",
    labelNames: ["plan", "side"],
    registers,
  });
  const dropped = new Counter({
    name: "ctrlmesh_proxy_filtered_objects_total",
    help: "Objects of lists and events of watches that the API server sent under a plan and proxy-side filtering dropped.",
    labelNames: ["plan"],
    registers,
  });
  const eventCell = createCounterCells({
    name: "ctrlmesh_proxy_watch_events_total",
    help: "Events of filtered watches, by what was done with them.",
    labelNames: ["resource", "decision"],
    registry,
  });
  const eventsOf = rememberNames((resource: string): EventCounters => {
    const cell = (decision: CountedDecision) => eventCell({ resource, decision });
    return { forwarded: cell("forwarded"), dropped: cell("dropped"), held: cell("held"), "left-out": cell("left-out") };
  });
  return {
    eventsOf: (target: GroupResource) => eventsOf(resourceName(target)),
    narrowed: new Counter({
      name: "ctrlmesh_proxy_pushdown_total",
      help: "Narrowed lists and watches, by the part of the rule that the API server was asked to filter: none, labels, one-namespace, without-namespaces (few excluded by name), shards, by-namespace (a list for each own one), nothing (of a foreign namespace), or labels+ one of those.",
      labelNames: ["plan"],
      registers,
    }),
    filteredBytes: new Counter({
      name: "ctrlmesh_proxy_filtered_bytes_total",
      help: "Bytes of lists and watches that the proxy took out.",
      registers,
    }),
    renewals: new Counter({
      name: "ctrlmesh_proxy_watch_renewals_total",
      help: "Watches whose subset has gained or lost a few namespaces: renewed, so that the client need not list again, or expired, where what those hold could not be asked for.",
      labelNames: ["result"],
      registers,
    }),
    /** To be called once a stream, since a look-up by labels costs more than the count. */
    servedBy(plan: PlanName): PlanCounters {
      return {
        read: bytes.labels({ plan, side: "read" }),
        sent: bytes.labels({ plan, side: "sent" }),
        dropped: dropped.labels({ plan }),
      };
    },
  };
}
