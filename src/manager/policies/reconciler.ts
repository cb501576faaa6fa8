// Gives every proxy of a namespace its policies, and writes the status of its policy objects. Level-based.
// Invariants: a status that cannot be written delays no policy, since publishing waits for no write; a
// namespace with many policies and pods delays the others only by slices of time.
import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { KUSIONSTACK_FINALIZER } from "../../api/kusionstack-keys.ts";
import type { PolicyStatus } from "../../api/policy-status.ts";
import { BoundedMap } from "../../base/bounded-map.ts";
import { createFairTurns, mapInSlices } from "../../base/fair-turns.ts";
import type { Pod } from "../../kube/client/resources.ts";
import { hasFinalizer, setFinalizer } from "../../runtime/finalizer.ts";
import type { Reconciler, Result } from "../../runtime/reconciler.ts";
import { writeStatus } from "../../runtime/status-writer.ts";
import type { Store } from "../../runtime/store.ts";
import { KEEPS_RULES, POLICY } from "../../wire/policy-type.ts";
import { acceptsType } from "../../wire/resource-type.ts";
import type { Apps } from "../apps/app.ts";
import type { ManagerContext } from "../context/manager-context.ts";
import type { PodLists } from "../facts/pod-watch.ts";
import { type ProxyFacts, podKey } from "../facts/proxy-facts.ts";
import { createAcceptedPolicies, type KnownPolicy } from "./accepted-policies.ts";
import { createBudgets } from "./budgets.ts";
import { type PodPolicies, podPolicies, targetPod } from "./pod-policies.ts";
import { needsEgress, type PolicyKind, type PolicyObject } from "./policy-kind.ts";
import { policyEvents, policyStatus, type TargetFacts } from "./policy-status.ts";

export interface PoliciesReconcilerOptions extends Pick<ManagerContext, "client" | "registry" | "events" | "clock"> {
  readonly kinds: readonly { readonly kind: PolicyKind; readonly store: Pick<Store<PolicyObject>, "list"> }[];
  readonly apps: Pick<Apps, "get" | "list" | "hasSynced">;
  readonly pods: Pick<PodLists, "list">;
}

/** The least time between two writes of one status. */
const STATUS_EVERY_MS = 1_000;
/** A timer can wait for 24 days at most. */
const LONGEST_WAIT_MS = 24 * 60 * 60 * 1_000;
/** A status whose time is forgotten may be written a moment earlier. */
const MAX_TIMES = 16_384;

/** The request names a namespace. */
export function createPoliciesReconciler(options: PoliciesReconcilerOptions): Reconciler {
  const { kinds, apps, pods, registry, clock } = options;
  const accepted = createAcceptedPolicies();
  const budgets = createBudgets(options);
  const turns = createFairTurns({ clock });
  /** When each status was last written, by uid. */
  const writtenMs = new BoundedMap<string, number>(MAX_TIMES);

  const publish = (own: PodPolicies) => {
    const { pod, policies, digest, keeps } = own;
    const key = podKey(pod);
    const facts = registry.facts(key);
    if (keepsAll(own, facts)) return;
    // A proxy of an older version serves on as long as no policy is for its pod.
    const isEmpty = policies.limits.length + policies.faults.length + policies.egress.length === 0;
    if (isEmpty && !facts?.capabilities.has(acceptsType(POLICY.name))) return;
    registry.publish(key, POLICY, { ...policies, keep: [...keeps.keys()], version: Math.max(1, clock.now()), digest });
  };

  return {
    async reconcile({ name: namespace }, signal) {
      if (!apps.hasSynced) return { requeueAfterMs: STATUS_EVERY_MS };
      // Only the pods of namespaces with an app are watched.
      const listed = pods.list(namespace) ?? (apps.list(namespace).length === 0 ? [] : undefined);
      if (listed === undefined) return {}; // the list of the pods queues the namespace again
      const objects = kinds.flatMap(({ kind, store }) => store.list(namespace).map((object) => ({ kind, object })));
      const known = accepted.update(namespace, objects);
      const policiesOf = podPolicies(known);
      const publishTo = (pod: Pod): PodPolicies[] => {
        const target = targetPod(pod, apps, registry.facts);
        if (target === undefined) return [];
        const own = policiesOf(target);
        publish(own);
        return [own];
      };
      const published = await mapInSlices(listed.toSorted(oldestFirst), publishTo, { turns, client: namespace, clock, signal });
      const proxies = published.flat().map((policies) => ({ ...policies, facts: registry.facts(podKey(policies.pod)) }));
      budgets.deal(
        namespace,
        known,
        proxies.map(({ pod }) => pod),
      );
      const write = async (policy: KnownPolicy) => {
        if (!(await releaseDeleted(options, policy, signal))) return undefined;
        return writePolicyStatus(options, policy, proxies, writtenMs, signal);
      };
      const waits = await Promise.all(known.map((policy) => turns.run(namespace, () => write(policy))));
      const due = waits.filter((ms) => ms !== undefined);
      return due.length === 0 ? {} : ({ requeueAfterMs: Math.max(1, Math.min(LONGEST_WAIT_MS, ...due)) } satisfies Result);
    },
  };
}

/** A proxy of an older version cannot keep the rules of single objects, so it gets no set while there is doubt. */
function keepsAll({ keeps }: PodPolicies, facts: ProxyFacts | undefined): boolean {
  return keeps.size > 0 && facts?.capabilities.has(KEEPS_RULES) === false && facts.policies.digest !== "";
}

function oldestFirst({ metadata: a }: Pod, { metadata: b }: Pod): number {
  const keyOf = ({ creationTimestamp = "", name = "" }: Pod["metadata"]) => `${creationTimestamp} ${name}`;
  return keyOf(a) < keyOf(b) ? -1 : 1;
}

/**
 * KusionStack's manager holds every policy with a finalizer, which nobody else would remove. False if the
 * object may be gone now.
 */
async function releaseDeleted(
  { client }: Pick<PoliciesReconcilerOptions, "client">,
  { kind: { resource }, object }: KnownPolicy,
  signal: AbortSignal,
): Promise<boolean> {
  const finalizer = KUSIONSTACK_FINALIZER;
  if (object.metadata.deletionTimestamp === undefined || !hasFinalizer(object, finalizer)) return true;
  await setFinalizer({ client, resource, finalizer, signal }, object, false);
  return false;
}

type ProxyPolicies = PodPolicies & { readonly facts: ProxyFacts | undefined };

/** Returns the milliseconds until the status may be written, or changes by itself; undefined for neither. */
async function writePolicyStatus(
  { client, events, clock }: PoliciesReconcilerOptions,
  { kind, object, policy, problems }: KnownPolicy,
  proxies: readonly ProxyPolicies[],
  writtenMs: BoundedMap<string, number>,
  signal: AbortSignal,
): Promise<number | undefined> {
  const { uid = "", generation = 0 } = object.metadata;
  const isEgress = policy !== undefined && needsEgress(policy.rules);
  const targets = proxies.filter(({ pod }) => policy?.isFor(pod)).map((each) => targetFacts(each, uid, isEgress));
  const specHash = problems.length === 0 ? hashOf(object) : (object.status?.currentSpecHash ?? "");
  const now = new Date(clock.now()).toISOString();
  const { off = "", endsMs, notes = [] } = policy ?? {};
  const isLimit = (policy?.rules.limits.length ?? 0) > 0;
  const isShadow = policy?.rules.limits.some(({ mode }) => mode === "Shadow") === true;
  const common = { generation, specHash, problems, off, endsMs, isLimit, isShadow, notes, targets, now };
  const leftMs = endsMs === undefined ? 0 : endsMs - Date.parse(now);
  const untilEnd = leftMs > 0 ? leftMs : undefined;
  let replaced = object.status;
  const desired = (current: PolicyObject) => {
    replaced = current.status;
    return withoutNewTime(policyStatus({ ...common, previous: replaced }), replaced);
  };
  const next = desired(object);
  if (isDeepStrictEqual(next, object.status)) return untilEnd;
  const sinceMs = clock.monotonicMs() - (writtenMs.get(uid) ?? Number.NEGATIVE_INFINITY);
  if (sinceMs < STATUS_EVERY_MS) return STATUS_EVERY_MS - sinceMs;
  const written = await writeStatus(client, kind.resource, object, desired, { signal });
  writtenMs.set(uid, clock.monotonicMs());
  if (written === undefined) return untilEnd;
  for (const { type, reason, message } of policyEvents(replaced, next)) events.event(object, type, reason, message);
  return untilEnd;
}

function targetFacts({ pod, digest, leftOut, facts }: ProxyPolicies, uid: string, isEgress: boolean): TargetFacts {
  const enforced = facts?.policies.digest ?? "";
  return {
    name: pod.name,
    ip: pod.ip,
    isSynced: enforced === digest && !leftOut.has(uid),
    isLeftOut: leftOut.has(uid),
    isConnected: facts?.connected === true,
    lacksEgress: isEgress && !pod.hasEgress,
    enforced,
    problems: facts?.problems[POLICY.name] ?? [],
    rules: (facts?.policies.rules ?? [])
      .filter((rule) => rule.uid === uid)
      .map(({ rule, opened, sinceMs }) => ({
        name: rule,
        state: opened ? "Opened" : "Closed",
        lastTransitionTime: new Date(sinceMs).toISOString(),
      })),
  };
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
