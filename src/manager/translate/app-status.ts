// Facts and plan -> the status of a VirtualApp. Pure. Invariant: bounded in size, whatever the number of namespaces, and
// every condition carries the generation that it speaks of.
import type { Condition, ConditionType } from "../../api/conditions.ts";
import { type HandoverStatus, MAX_WAITING_ON, type VirtualAppStatus } from "../../api/virtual-app-status.ts";
import { lockNameFor } from "../../route/lock.ts";
import { DEFAULT_SUBSET } from "../../route/table.ts";
import { holdersOf } from "../handover/claims.ts";
import type { ProxyFacts } from "../snapshot-server/proxy-registry.ts";
import { type AppPod, podKey } from "./app-pods.ts";
import type { AppPlan } from "./plan-app.ts";

export interface StatusFacts {
  readonly generation: number;
  readonly previous: VirtualAppStatus | undefined;
  readonly pods: readonly AppPod[];
  readonly factsOf: (pod: string) => ProxyFacts | undefined;
  readonly plan: AppPlan;
  readonly version: number;
  readonly lockName: string;
  /** RFC 3339, whole seconds. */
  readonly now: string;
}

type Verdict = Pick<Condition, "status" | "reason" | "message">;

/** The status of an app whose spec is good. */
export function appStatus(facts: StatusFacts): VirtualAppStatus {
  const { plan, previous, generation, now } = facts;
  const proxies = countProxies(facts);
  const counts = countNamespaces(plan);
  const moving = new Set(plan.waits.map(({ namespace }) => namespace)).size;
  const verdicts: [ConditionType, Verdict][] = [
    ["Ready", readyVerdict(facts, proxies, counts)],
    ["Accepted", { status: "True", reason: "Valid", message: "the spec is valid" }],
    ["Converged", convergedVerdict(facts, proxies)],
    ["TrafficIntercepted", interceptedVerdict(facts)],
  ];
  const handover = handoverOf(facts);
  return {
    observedGeneration: generation,
    routeVersion: facts.version,
    routeDigest: plan.digest,
    proxies,
    namespaces: { total: plan.wished.classOf.size - (counts.get(undefined) ?? 0), moving, held: 0 },
    subsets: plan.subsets.map((name) => subsetStatus(facts, name, counts.get(name) ?? 0)),
    ...(handover === undefined ? {} : { handover }),
    conditions: verdicts.map(([type, verdict]) => condition(previous, type, verdict, generation, now)),
  };
}

/** The status of an app whose spec is refused: what was enforced stays, and the conditions say why. */
export function rejectedStatus(
  facts: Pick<StatusFacts, "generation" | "previous" | "now"> & { readonly message: string },
): VirtualAppStatus {
  const { generation, previous, now, message } = facts;
  const verdict: Verdict = { status: "False", reason: "Invalid", message };
  const types: ConditionType[] = ["Ready", "Accepted"];
  const kept = (previous?.conditions ?? []).filter(({ type }) => !types.includes(type as ConditionType));
  return {
    ...previous,
    observedGeneration: generation,
    conditions: [...types.map((type) => condition(previous, type, verdict, generation, now)), ...kept],
  };
}

function condition(
  previous: VirtualAppStatus | undefined,
  type: ConditionType,
  verdict: Verdict,
  observedGeneration: number,
  now: string,
): Condition {
  const before = previous?.conditions?.find((row) => row.type === type);
  const lastTransitionTime = before?.status === verdict.status ? before.lastTransitionTime : now;
  return { type, ...verdict, observedGeneration, lastTransitionTime };
}

function countProxies({ pods, factsOf, plan }: StatusFacts): NonNullable<VirtualAppStatus["proxies"]> {
  const meshed = pods.filter(({ meshed }) => meshed);
  const factsOfMeshed = meshed.map((pod) => ({ pod, facts: factsOf(podKey(pod)) }));
  return {
    total: meshed.length,
    connected: factsOfMeshed.filter(({ facts }) => facts?.connected).length,
    synced: factsOfMeshed.filter(({ pod, facts }) => facts?.enforced?.digest === plan.rules.get(pod.subset)?.digest).length,
  };
}

// The number of namespaces by owning subset; under undefined those that no subset owns.
function countNamespaces({ wished }: AppPlan): Map<string | undefined, number> {
  const counts = new Map<string | undefined, number>();
  for (const namespace of wished.classOf.keys()) {
    const holders = [...holdersOf(wished, namespace)];
    for (const holder of holders.length === 0 ? [undefined] : holders) counts.set(holder, (counts.get(holder) ?? 0) + 1);
  }
  return counts;
}

function subsetStatus({ pods, factsOf, lockName }: StatusFacts, name: string, namespaces: number) {
  const own = pods.filter(({ subset }) => subset === name);
  const leader = own.find((pod) => factsOf(podKey(pod))?.leader)?.name;
  return {
    name,
    namespaces,
    readyPods: own.filter(({ ready }) => ready).length,
    pods: own.length,
    ...(lockName === "" ? {} : { lock: lockNameFor(lockName, name) }),
    ...(leader === undefined ? {} : { leader }),
  };
}

function readyVerdict(
  facts: StatusFacts,
  proxies: NonNullable<VirtualAppStatus["proxies"]>,
  counts: ReadonlyMap<string | undefined, number>,
): Verdict {
  const refused = facts.pods.find((pod) => (facts.factsOf(podKey(pod))?.problems.length ?? 0) > 0);
  if (refused !== undefined) {
    const problems = facts.factsOf(podKey(refused))?.problems.join("; ");
    return { status: "False", reason: "SnapshotRefused", message: `pod ${refused.name} refused its snapshot: ${problems}` };
  }
  const empty = facts.plan.subsets.find(
    (name) => (counts.get(name) ?? 0) > 0 && !facts.pods.some((pod) => pod.subset === name && pod.ready),
  );
  if (empty !== undefined) {
    const message = `${subsetText(empty)} owns ${counts.get(empty)} namespaces and has no ready pod: nobody works on them`;
    return { status: "False", reason: "SubsetWithoutPods", message };
  }
  if (proxies.synced < proxies.total && facts.plan.waits.length === 0)
    return { ...convergedVerdict(facts, proxies), status: "False" };
  return {
    status: "True",
    reason: "InSync",
    message: `${proxies.synced} of ${proxies.total} proxies enforce route ${facts.version}`,
  };
}

function convergedVerdict({ plan, version }: StatusFacts, { synced, total }: { synced: number; total: number }): Verdict {
  const [wait] = plan.waits;
  if (wait !== undefined) {
    const moving = new Set(plan.waits.map(({ namespace }) => namespace)).size;
    return {
      status: "False",
      reason: "Moving",
      message: `${moving} namespaces move: ${wait.namespace} waits for pod ${wait.pod}`,
    };
  }
  const message = `${synced} of ${total} proxies enforce route ${version}`;
  return synced === total ? { status: "True", reason: "InSync", message } : { status: "False", reason: "ProxiesBehind", message };
}

function interceptedVerdict({ pods }: StatusFacts): Verdict {
  const bare = pods.filter(({ meshed, running }) => running && !meshed);
  const [first] = bare;
  if (first !== undefined) {
    const message = `${bare.length} running pods carry no proxy and see everything, ${first.name} first: restart them to have it injected`;
    return { status: "False", reason: "PodsWithoutProxy", message };
  }
  return { status: "True", reason: "AllInjected", message: `${pods.length} pods carry the proxy` };
}

function handoverOf({ plan, pods, previous, now }: StatusFacts): HandoverStatus | undefined {
  const [wait] = plan.waits;
  if (wait === undefined) return undefined;
  const since = previous?.handover?.since ?? now;
  const from = pods.find(({ name }) => name === wait.pod)?.subset ?? DEFAULT_SUBSET;
  const to = [...holdersOf(plan.wished, wait.namespace)].find((subset) => subset !== from) ?? DEFAULT_SUBSET;
  const waiting = new Set(plan.waits.map(({ pod }) => pod)).size;
  const losers = pods.filter(({ subset }) => subset === from).length;
  return {
    from,
    to,
    phase: "Draining",
    since,
    done: Math.max(0, losers - waiting),
    total: losers,
    waitingOn: plan.waits
      .slice(0, MAX_WAITING_ON)
      .map(({ namespace, pod }) => ({ namespace, pod, reason: "NotAcknowledged", since })),
  };
}

function subsetText(name: string): string {
  return name === DEFAULT_SUBSET ? "the default subset" : `subset "${name}"`;
}
