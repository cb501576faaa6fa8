// The last plan of each resource that is listed or watched, for `/debug/plans`. Invariant: the log is
// bounded, and holds no object and no selector, only the lengths of selectors.
import { BoundedMap } from "../../../base/bounded-map.ts";
import type { Clock } from "../../../base/clock.ts";
import type { GroupResource } from "../../../kube/types.ts";
import type { ListChoice, ListSize } from "../../../mesh/ownership/plan-lists.ts";
import type { PlanName } from "../../../mesh/ownership/plan-query.ts";
import type { Feature, Lack } from "../../api-server/discovery.ts";
import type { ResourceCall } from "../../call/call.ts";

/** A part of a plan that was not sent, with the reason. */
export interface NotSent {
  readonly feature: Feature;
  readonly why: Lack | "callers-own" | "too-long";
}

/** How one list or watch was sent, and answered. */
export interface PlanOutcome {
  readonly plan: PlanName;
  /** The numbers of known namespaces; both 0 if namespaces do not decide. */
  readonly namespaces: { readonly own: number; readonly foreign: number };
  readonly notSent: readonly NotSent[];
  /** HTTP status of the API server's answer. */
  readonly status: number;
}

/** The last choice between one list and lists by namespace, with the estimates behind it. */
export interface ListWay extends Partial<Omit<ListChoice, "way" | "why">>, Partial<ListSize> {
  readonly way: ListChoice["way"];
  readonly why: ListChoice["why"] | "failed";
}

export interface LoggedPlan extends GroupResource, PlanOutcome {
  readonly verb: string;
  /** Characters of each selector as it was sent, the caller's own part included. */
  readonly selectorChars: { readonly label: number; readonly field: number; readonly shard: number };
  /** Narrowed lists and watches of this resource since it came into the log. */
  readonly requests: number;
  readonly lists?: ListWay;
  /** RFC 3339. */
  readonly at: string;
}

export type PlanLog = ReturnType<typeof createPlanLog>;

/** When there are more, the log forgets the resource with the oldest request. */
const MAX_RESOURCES = 250;

export function createPlanLog(clock: Pick<Clock, "now">) {
  const plans = new BoundedMap<string, Omit<LoggedPlan, "lists" | "at"> & { readonly atMs: number }>(MAX_RESOURCES);
  const ways = new BoundedMap<string, ListWay>(MAX_RESOURCES);
  return {
    chose(target: GroupResource, way: ListWay): void {
      ways.set(keyOf(target), way);
    },
    /** Takes the request as it was sent to the API server. */
    record({ info: { group, resource, verb, query } }: Pick<ResourceCall, "info">, outcome: PlanOutcome): void {
      const key = keyOf({ group, resource });
      const charsOf = (name: string) => (query.get(name) ?? "").length;
      const selectorChars = { label: charsOf("labelSelector"), field: charsOf("fieldSelector"), shard: charsOf("shardSelector") };
      const requests = (plans.get(key)?.requests ?? 0) + 1;
      plans.set(key, { group, resource, verb, ...outcome, selectorChars, requests, atMs: clock.now() });
    },
    /** Newest first. */
    list(): readonly LoggedPlan[] {
      const described = [...plans].map(([key, { atMs, ...plan }]) => {
        const lists = ways.get(key);
        return { ...plan, ...(lists && { lists }), at: new Date(atMs).toISOString() };
      });
      return described.reverse();
    },
  };
}

function keyOf({ group, resource }: GroupResource): string {
  return `${group}/${resource}`;
}
