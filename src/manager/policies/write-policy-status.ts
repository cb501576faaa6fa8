// Writes the status of a policy object and records its Events. Invariants: a status is written at most once a
// second, and the last state is not lost; a status that changes by time alone is written at that time.
import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { PolicyStatus } from "../../api/policy-status.ts";
import { BoundedMap } from "../../base/bounded-map.ts";
import type { FaultRule } from "../../policy/policy.ts";
import { writeStatus } from "../../runtime/status-writer.ts";
import type { ManagerContext } from "../context/manager-context.ts";
import type { KnownPolicy } from "./accepted-policies.ts";
import { policyEvents } from "./policy-events.ts";
import type { Policy, PolicyObject } from "./policy-kind.ts";
import { policyStatus } from "./policy-status.ts";
import { type ProxyPolicies, targetFacts } from "./target-facts.ts";

/** The least time between two writes of one status. */
export const STATUS_EVERY_MS = 1_000;
/** A status whose time is forgotten may be written a moment earlier. */
const MAX_TIMES = 16_384;

export function createPolicyStatusWriter({ client, events, clock }: Pick<ManagerContext, "client" | "events" | "clock">) {
  /** When each status was last written, by uid. */
  const writtenMs = new BoundedMap<string, number>(MAX_TIMES);

  /** Returns the milliseconds until the status may be written, or changes by itself; undefined for neither. */
  return async (
    { kind, object, policy, problems }: KnownPolicy,
    proxies: readonly ProxyPolicies[],
    signal: AbortSignal,
  ): Promise<number | undefined> => {
    const { uid = "", generation = 0 } = object.metadata;
    const specHash = problems.length === 0 ? hashOf(object) : (object.status?.currentSpecHash ?? "");
    const now = new Date(clock.now()).toISOString();
    const ofPolicy = proxies.filter((each) => isTarget(each, uid, policy));
    let replaced = object.status;
    const desired = (current: PolicyObject) => {
      const previous = current.status;
      replaced = previous;
      const targets = ofPolicy.map((each) => targetFacts(each, uid, policy, previous));
      return withoutNewTime(policyStatus({ generation, specHash, problems, policy, targets, now, previous }), previous);
    };
    const next = desired(object);
    const changeMs = nextChangeMs(policy, ofPolicy, clock.now());
    if (isDeepStrictEqual(next, object.status)) return changeMs;
    const sinceMs = clock.monotonicMs() - (writtenMs.get(uid) ?? Number.NEGATIVE_INFINITY);
    if (sinceMs < STATUS_EVERY_MS) return STATUS_EVERY_MS - sinceMs;
    const written = await writeStatus(client, kind.resource, object, desired, { signal });
    writtenMs.set(uid, clock.monotonicMs());
    if (written === undefined) return changeMs;
    for (const { type, reason, message } of policyEvents(replaced, next)) events.event(object, type, reason, message);
    return changeMs;
  };
}

/** Of a spec that this manager has not seen, only the open breakers that proxies report tell the pods. */
function isTarget({ pod, facts }: ProxyPolicies, uid: string, policy: Policy | undefined): boolean {
  if (policy !== undefined) return policy.isFor(pod) !== false;
  return facts?.policies.rules.some((rule) => rule.uid === uid) === true;
}

/** Milliseconds until the end of the policy, an edge of its times, or the moment at which a proxy counts as lost. */
function nextChangeMs(policy: Policy | undefined, proxies: readonly ProxyPolicies[], nowMs: number): number | undefined {
  const endMs = (policy?.endsMs ?? 0) - nowMs;
  const lostMs = proxies.flatMap(({ lostInMs = 0 }) => (lostInMs > 0 ? [lostInMs] : []));
  const times = [...(endMs > 0 ? [endMs] : []), ...lostMs, ...nextFaultChangesMs(policy?.rules.faults ?? [], nowMs)];
  return times.length === 0 ? undefined : Math.min(...times);
}

const DAY_MS = 86_400_000;

/** Milliseconds until the next edge of each window; on some days nothing changes there. */
function nextFaultChangesMs(faults: readonly FaultRule[], nowMs: number): number[] {
  return faults.flatMap(({ effective }) => {
    if (effective === undefined) return [];
    const edges = [effective.startSecond, effective.endSecond];
    return edges.map((second) => DAY_MS - ((((nowMs - second * 1_000) % DAY_MS) + DAY_MS) % DAY_MS));
  });
}

/** A status that differs in its time alone is not new. */
function withoutNewTime(next: PolicyStatus, before: PolicyStatus | undefined): PolicyStatus {
  const same = { ...next, lastUpdatedTime: before?.lastUpdatedTime };
  return before !== undefined && isDeepStrictEqual(same, before) ? before : next;
}

function hashOf({ spec }: PolicyObject & { readonly spec?: unknown }): string {
  return createHash("sha256")
    .update(JSON.stringify(spec ?? null))
    .digest("hex")
    .slice(0, 16);
}
