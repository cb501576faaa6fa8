// The metrics of the filters, in one place so that their names can be read off.
import { type CounterCell, createCounterCells } from "../../base/metric-cells.ts";
import { Counter, type Registry } from "../../base/metrics.ts";
import type { GroupResource } from "../../kube/types.ts";
import type { PlanName } from "../../route/plan-query.ts";

export interface StreamMetrics {
  /** The watch events of a resource, by what was done with them. */
  eventsOf(target: GroupResource): EventCounters;
  /** Narrowed requests by their plan. */
  readonly narrowed: Counter<"plan">;
  readonly filteredBytes: Counter;
  /** Watches of collections that gained or lost namespaces, by result. */
  readonly renewals: Counter<"result">;
  /**
   * The bytes of one plan's answers; made once a stream, since a look-up by labels costs more than the count.
   */
  servedBy(plan: PlanName): PlanCounters;
}

/** What an answer costs and what of it was in vain. */
export interface PlanCounters {
  /** Bytes that came from the API server. */
  read(bytes: number): void;
  /** Bytes that went to the client. */
  sent(bytes: number): void;
  /** Objects of lists and events of watches that proxy-side filtering dropped. */
  dropped(objects: number): void;
}

/** An event that is held is counted again when it is decided. */
export type CountedDecision = "forwarded" | "dropped" | "held" | "left-out";
export type EventCounters = Readonly<Record<CountedDecision, CounterCell>>;

export function createStreamMetrics(registry: Registry): StreamMetrics {
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
  const events = new Map<string, EventCounters>();
  return {
    eventsOf(target) {
      const resource = resourceLabel(target);
      const known = events.get(resource);
      if (known !== undefined) return known;
      const cell = (decision: CountedDecision) => eventCell({ resource, decision });
      const made = { forwarded: cell("forwarded"), dropped: cell("dropped"), held: cell("held"), "left-out": cell("left-out") };
      events.set(resource, made);
      return made;
    },
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
    servedBy(plan) {
      const [read, sent, objects] = [
        bytes.labels({ plan, side: "read" }),
        bytes.labels({ plan, side: "sent" }),
        dropped.labels({ plan }),
      ];
      return {
        read: (count) => read.inc(count),
        sent: (count) => sent.inc(count),
        dropped: (count) => objects.inc(count),
      };
    },
  };
}

/** pods, deployments.apps */
function resourceLabel({ group, resource }: GroupResource): string {
  return group === "" ? resource : `${resource}.${group}`;
}
