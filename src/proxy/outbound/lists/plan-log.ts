// The last plan of each resource that is listed or watched, for `/debug/plans`. Invariant: bounded, and of
// objects and callers' selectors it holds only lengths.
import { BoundedMap } from "../../../base/bounded-map.ts";
import type { Clock } from "../../../base/clock.ts";
import type { GroupResource } from "../../../kube/types.ts";
import type { ListChoice, ListSize } from "../../../route/plan-lists.ts";
import type { PlanName } from "../../../route/plan-query.ts";
import type { NotSent } from "./filter-query.ts";

/** The last plan of one resource. */
export interface PlanEntry extends GroupResource {
  readonly verb: string;
  readonly plan: PlanName;
  /** Characters of each selector as it was sent, the caller's own part included. */
  readonly selectorChars: { readonly label: number; readonly field: number; readonly shard: number };
  /** Known namespaces; both 0 where namespaces say nothing. */
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

export interface PlanLog {
  record(entry: PlanEntry): void;
  chose(target: GroupResource, way: ListWay): void;
  list(): readonly LoggedPlan[];
}

export interface LoggedPlan extends PlanEntry {
  /** Narrowed lists and watches of this resource since it came into the log. */
  readonly requests: number;
  readonly lists?: ListWay;
  /** RFC 3339, of the last one. */
  readonly at: string;
}

interface Line {
  readonly entry: PlanEntry;
  readonly requests: number;
  readonly atMs: number;
}

/** Resources that are remembered. The one with the oldest request goes first. */
const MAX_RESOURCES = 250;

export function createPlanLog(clock: Pick<Clock, "now">, maxResources = MAX_RESOURCES): PlanLog {
  const lines = new BoundedMap<string, Line>(maxResources);
  const ways = new BoundedMap<string, ListWay>(maxResources);
  return {
    chose: (target, way) => void ways.set(keyOf(target), way),
    record(entry) {
      const key = keyOf(entry);
      const requests = (lines.get(key)?.requests ?? 0) + 1;
      lines.set(key, { entry, requests, atMs: clock.now() });
    },
    list: () => describePlans([...lines.values()], (entry) => ways.get(keyOf(entry))),
  };
}

// Newest first.
function describePlans(lines: readonly Line[], wayOf: (entry: PlanEntry) => ListWay | undefined): LoggedPlan[] {
  const describe = ({ entry, requests, atMs }: Line): LoggedPlan => {
    const lists = wayOf(entry);
    return { ...entry, ...(lists && { lists }), requests, at: new Date(atMs).toISOString() };
  };
  return lines.map(describe).reverse();
}

function keyOf({ group, resource }: GroupResource): string {
  return `${group}/${resource}`;
}
