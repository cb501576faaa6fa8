// Gives every proxy of a namespace its policies, and writes the status of its policy objects. Level-based.
// Invariants: a status that cannot be written delays no policy, since publishing waits for no write; a
// namespace with many policies and pods delays the others only by slices of time.
import { KUSIONSTACK_FINALIZER } from "../../api/kusionstack-keys.ts";
import { BoundedMap } from "../../base/bounded-map.ts";
import type { Clock } from "../../base/clock.ts";
import { createFairTurns, mapInSlices } from "../../base/fair-turns.ts";
import type { Pod } from "../../kube/client/resources.ts";
import { POLICY } from "../../mesh/contract/policy-type.ts";
import { acceptsType } from "../../mesh/contract/resource-type.ts";
import { type PodKey, podKey } from "../../mesh/handover/proxy-facts.ts";
import { hasFinalizer, setFinalizer } from "../../runtime/finalizer.ts";
import type { Reconciler, Result } from "../../runtime/reconciler.ts";
import type { Store } from "../../runtime/store.ts";
import type { Apps } from "../apps/app.ts";
import type { ManagerContext } from "../context/manager-context.ts";
import type { PodLists } from "../facts/pod-watch.ts";
import { LOST_AFTER_MS } from "../status/facts.ts";
import { createAcceptedPolicies, type KnownPolicy } from "./accepted-policies.ts";
import { createBudgets } from "./budgets.ts";
import { type PodPolicies, podPolicies, targetPod } from "./pod-policies.ts";
import type { PolicyKind, PolicyObject } from "./policy-kind.ts";
import type { ProxyPolicies } from "./target-facts.ts";
import { createPolicyStatusWriter, STATUS_EVERY_MS } from "./write-policy-status.ts";

export interface PoliciesReconcilerOptions extends Pick<ManagerContext, "client" | "registry" | "events" | "clock"> {
  readonly kinds: readonly { readonly kind: PolicyKind; readonly store: Pick<Store<PolicyObject>, "list"> }[];
  readonly apps: Pick<Apps, "get" | "list" | "hasSynced">;
  readonly pods: Pick<PodLists, "list">;
}

/** A timer can wait for 24 days at most. */
const LONGEST_WAIT_MS = 24 * 60 * 60 * 1_000;

/** The request names a namespace. */
export function createPoliciesReconciler(options: PoliciesReconcilerOptions): Reconciler {
  const { kinds, apps, pods, registry, clock } = options;
  const accepted = createAcceptedPolicies();
  const budgets = createBudgets(options);
  const turns = createFairTurns({ clock });
  const lostInMs = createLostProxies(clock);
  const writeStatus = createPolicyStatusWriter(options);

  const publish = ({ pod, policies, digest, keeps }: PodPolicies) => {
    const key = podKey(pod);
    // A proxy of an older version serves on as long as no policy is for its pod.
    const isEmpty = policies.limits.length + policies.faults.length + policies.egress.length === 0;
    if (isEmpty && !registry.facts(key)?.capabilities.has(acceptsType(POLICY.name))) return;
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
      const slices = { turns, client: namespace, clock, signal };
      const published = await mapInSlices(listed.toSorted(oldestFirst), publishTo, slices);
      const proxies = published.flat().map((policies): ProxyPolicies => {
        const key = podKey(policies.pod);
        const facts = registry.facts(key);
        return { ...policies, facts, lostInMs: lostInMs(key, facts?.connected === true) };
      });
      await budgets.deal(namespace, known, proxies, (items, work) => mapInSlices(items, work, slices));
      const write = async (policy: KnownPolicy) => {
        if (!(await releaseDeleted(options, policy, signal))) return undefined;
        return writeStatus(policy, proxies, signal);
      };
      const waits = await Promise.all(known.map((policy) => turns.run(namespace, () => write(policy))));
      const due = waits.filter((ms) => ms !== undefined);
      return due.length === 0 ? {} : ({ requeueAfterMs: Math.max(1, Math.min(LONGEST_WAIT_MS, ...due)) } satisfies Result);
    },
  };
}

/** The time of a pod that is forgotten begins again. */
const MAX_PODS = 65_536;

/**
 * Milliseconds until a proxy counts as lost, 0 if it does; undefined if it is connected. The time is longer than a failover
 * of the manager, so a failover changes no status.
 */
function createLostProxies(clock: Clock): (pod: PodKey, isConnected: boolean) => number | undefined {
  const sinceMs = new BoundedMap<PodKey, number>(MAX_PODS);
  return (pod, isConnected) => {
    const now = clock.monotonicMs();
    const since = sinceMs.get(pod) ?? now;
    if (isConnected) sinceMs.delete(pod);
    else sinceMs.set(pod, since);
    return isConnected ? undefined : Math.max(0, since + LOST_AFTER_MS - now);
  };
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
