// A limit of deletes in percent of the objects that there are (`maxDeleted`). It has the methods of a token
// bucket. Invariant: within an interval at most twice the limit is deleted, however the deletes are spread and
// whichever request does it: a deletecollection costs what it would delete.
import { BoundedMap } from "../../base/bounded-map.ts";
import type { DeletesSpec } from "../policy.ts";
import type { Action, PolicyRequest } from "../policy-request.ts";
import { type Decision, PASS } from "./limiter.ts";

/** The only decision about a deletecollection whose objects are not counted yet. The count comes soon. */
export const UNCOUNTED: Decision = { kind: "limited", waitMs: 1_000 };
const EPSILON = 1e-9;
/** More than clusters have. */
const MAX_RESOURCES = 4_096;

interface Deleted {
  readonly count: number;
  readonly atMs: number;
}

export function createDeleteBudget(first: DeletesSpec) {
  let spec = first;
  /** The deletes that count, by resource. They wear off evenly over the interval. */
  const deleted = new BoundedMap<string, Deleted>(MAX_RESOURCES);
  /** The most that may be deleted of the resource that was asked for last. */
  let limit = spec.atLeast;
  let last = "";

  const limitFor = ({ population }: PolicyRequest): number => {
    const { total = 0, byNamespace } = population?.() ?? {};
    const isAll = spec.namespaces.includes("*");
    const objects = isAll ? total : spec.namespaces.reduce((sum, name) => sum + (byNamespace?.get(name) ?? 0), 0);
    return Math.max(spec.atLeast, Math.floor((objects * spec.percent) / 100));
  };
  /** Undefined if that is not known yet. */
  const costOf = ({ isBulk, population }: PolicyRequest, { namespace }: Action): number | undefined => {
    if (!isBulk) return 1;
    const known = population?.();
    if (known === undefined) return undefined;
    const nobodyKnows = known.isPartial ? undefined : 0;
    if (namespace !== "") return known.byNamespace.get(namespace) ?? nobodyKnows;
    return known.isPartial ? undefined : known.total;
  };
  const deletedAt = (key: string, most: number, nowMs: number): number => {
    const { count, atMs } = deleted.get(key) ?? { count: 0, atMs: nowMs };
    return Math.max(0, count - ((nowMs - atMs) / spec.intervalMs) * most);
  };
  return {
    ask(request: PolicyRequest, nowMs: number): Decision {
      const action = deleteOf(request);
      if (action === undefined) return PASS;
      const cost = costOf(request, action);
      if (cost === undefined) return UNCOUNTED;
      const most = limitFor(request);
      const missing = deletedAt(keyOf(action), most, nowMs) + cost - most;
      if (missing <= EPSILON) return PASS;
      return { kind: "limited", waitMs: cost <= most ? (missing / most) * spec.intervalMs : Number.POSITIVE_INFINITY };
    },
    charge(request: PolicyRequest, nowMs: number): undefined {
      const action = deleteOf(request);
      if (action === undefined) return;
      limit = limitFor(request);
      last = keyOf(action);
      const count = deletedAt(last, limit, nowMs) + (costOf(request, action) ?? 0);
      deleted.set(last, { count, atMs: nowMs });
    },
    /** Of the resource that was deleted last. */
    tokensAt: (nowMs: number): number => Math.max(0, limit - deletedAt(last, limit, nowMs)),
    edit(next: DeletesSpec): void {
      spec = next;
    },
    fill: (): void => deleted.clear(),
    /** Why it refuses the request, for people. */
    figure(request: PolicyRequest, nowMs: number): string {
      const action = deleteOf(request);
      if (action === undefined) return "";
      const cost = costOf(request, action);
      if (cost === undefined) return "the objects that a deletecollection would delete are not counted yet";
      const most = limitFor(request);
      const { total } = request.population?.() ?? {};
      const share =
        total === undefined
          ? `atLeast ${spec.atLeast}, since the objects are not counted`
          : `${spec.percent} % of ${total} objects, at least ${spec.atLeast}`;
      const before = Math.ceil(deletedAt(keyOf(action), most, nowMs));
      return `${before} deleted lately, and ${cost} more would exceed ${most} (${share})`;
    },
  };
}

function deleteOf({ actions }: PolicyRequest): Action | undefined {
  return actions.find(({ verb }) => verb === "delete");
}

function keyOf({ group, resource }: Action): string {
  return `${resource}.${group}`;
}
