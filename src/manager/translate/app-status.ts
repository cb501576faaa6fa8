// Facts and plan -> the status of a VirtualApp. Pure. Invariant: bounded in size, whatever the number of namespaces, and
// every condition carries the generation that it speaks of.
import type { Condition, ConditionType } from "../../api/conditions.ts";
import { type HandoverStatus, MAX_WAITING_ON, type VirtualAppStatus } from "../../api/virtual-app-status.ts";
import { lockNameFor } from "../../route/lock.ts";
import { DEFAULT_SUBSET } from "../../route/table.ts";
import { holdersOf } from "../handover/claims.ts";
import type { ProxyFacts } from "../snapshot-server/proxy-registry.ts";
import { type AppPod, podKey } from "./app-pods.ts";
import { lockVerdict } from "./lock-verdict.ts";
import type { AppPlan } from "./plan-app.ts";

export interface StatusFacts {
  readonly generation: number;
  readonly previous: VirtualAppStatus | undefined;
  readonly pods: readonly AppPod[];
  readonly factsOf: (pod: string) => ProxyFacts | undefined;
  readonly plan: AppPlan;
  readonly version: number;
  readonly lockName: string;
  /** Paths of the spec that have no effect in this version. */
  readonly idle: readonly string[];
  /** RFC 3339, whole seconds. */
  readonly now: string;
}

type Verdict = Pick<Condition, "status" | "reason" | "message">;

/** The status of an app whose spec is good. */
export function appStatus(facts: StatusFacts): VirtualAppStatus {
  const { plan, previous, generation, now } = facts;
  const proxies = countProxies(facts);
  const counts = countNamespaces(plan);
  const moving = movesOf(plan).size;
  const lockBefore = previous?.conditions?.find((row) => row.type === "LockPermitted" && row.observedGeneration === generation);
  const lock = lockVerdict({ ...facts, before: lockBefore && verdictOf(lockBefore) });
  const verdicts: [ConditionType, Verdict][] = [
    ["Ready", readyVerdict(facts, proxies, counts, lock)],
    ["Accepted", acceptedVerdict(facts)],
    ["Converged", convergedVerdict(facts, proxies)],
    ["LockPermitted", lock],
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
  facts: Pick<StatusFacts, "generation" | "previous" | "now"> & { readonly reason: string; readonly message: string },
): VirtualAppStatus {
  const { generation, previous, now, reason } = facts;
  const message = `${facts.message} (running pods keep their routes; a new pod gets none until this is mended)`;
  const verdict: Verdict = { status: "False", reason, message };
  const types: ConditionType[] = ["Ready", "Accepted"];
  const kept = (previous?.conditions ?? []).filter(({ type }) => !types.includes(type as ConditionType));
  return {
    ...previous,
    observedGeneration: generation,
    conditions: [...types.map((type) => condition(previous, type, verdict, generation, now)), ...kept],
  };
}

function verdictOf({ status, reason, message }: Condition): Verdict {
  return { status, reason, message };
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

function meshedPods({ pods }: StatusFacts): AppPod[] {
  return pods.filter(({ proxy, ended }) => proxy === "own" && !ended);
}

/** The namespaces that are known to change hands, in distinction from those of which a pod has only not reported yet. */
function movesOf({ waits }: AppPlan): ReadonlySet<string> {
  return new Set(waits.flatMap(({ cause, namespace }) => (cause === "holds" && namespace !== "" ? [namespace] : [])));
}

function isSynced({ factsOf, plan }: StatusFacts, pod: AppPod): boolean {
  return factsOf(podKey(pod))?.enforced?.digest === plan.rules.get(pod.subset)?.digest;
}

function countProxies(facts: StatusFacts): NonNullable<VirtualAppStatus["proxies"]> {
  const meshed = meshedPods(facts);
  return {
    total: meshed.length,
    connected: meshed.filter((pod) => facts.factsOf(podKey(pod))?.connected).length,
    synced: meshed.filter((pod) => isSynced(facts, pod)).length,
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
  lock: Verdict,
): Verdict {
  const refused = facts.pods.find((pod) => (facts.factsOf(podKey(pod))?.problems.length ?? 0) > 0);
  if (refused !== undefined) {
    const problems = facts.factsOf(podKey(refused))?.problems.join("; ");
    return { status: "False", reason: "SnapshotRefused", message: `pod ${refused.name} refused its snapshot: ${problems}` };
  }
  const foreign = facts.pods.find(({ proxy, ended }) => proxy === "foreign" && !ended);
  if (foreign !== undefined) {
    const message = `pod ${foreign.name} is selected by this app and carries the proxy of another one: nothing new is granted beside it`;
    return { status: "False", reason: "OwnershipConflict", message };
  }
  if (lock.status === "False") return lock;
  const byLabels = subsetsByLabels(facts.plan);
  const empty = facts.plan.subsets.find(
    (name) => ((counts.get(name) ?? 0) > 0 || byLabels.has(name)) && !facts.pods.some((pod) => pod.subset === name && pod.ready),
  );
  if (empty !== undefined) {
    const what = byLabels.has(empty) ? "objects by their labels" : `${counts.get(empty)} namespaces`;
    const message = `${subsetText(empty)} owns ${what} and has no ready pod: nobody works on them`;
    return { status: "False", reason: "SubsetWithoutPods", message };
  }
  // On its way to a proxy that serves is in sync enough: a healthy handover keeps Ready True.
  const behind = meshedPods(facts).find((pod) => {
    const known = facts.factsOf(podKey(pod));
    return !isSynced(facts, pod) && !(known?.connected && known.enforced !== undefined && known.outstanding !== undefined);
  });
  if (behind !== undefined) {
    const message = `${syncText(facts, proxies)}; pod ${behind.name} is ${facts.factsOf(podKey(behind))?.connected ? "behind" : "not connected"}`;
    return { status: "False", reason: "ProxiesBehind", message };
  }
  return { status: "True", reason: "InSync", message: syncText(facts, proxies) };
}

/** The subsets to which labels give objects, in whatever namespaces there are. */
function subsetsByLabels({ wished }: AppPlan): ReadonlySet<string> {
  return new Set(wished.rules.flatMap((rule) => (rule.kind === "objects" ? [rule.subset] : [])));
}

function syncText({ version }: StatusFacts, { synced, total }: { synced: number; total: number }): string {
  return `${synced} of ${total} proxies enforce route ${version}`;
}

function acceptedVerdict({ idle }: StatusFacts): Verdict {
  if (idle.length === 0) return { status: "True", reason: "Valid", message: "the spec is valid" };
  return {
    status: "True",
    reason: "ValidInPart",
    message: `the spec is valid; without effect in this version: ${idle.join(", ")}`,
  };
}

function convergedVerdict(facts: StatusFacts, proxies: { synced: number; total: number }): Verdict {
  const { waits } = facts.plan;
  const moving = movesOf(facts.plan);
  const wait = waits.find(({ cause }) => cause === "holds") ?? waits[0];
  if (wait === undefined) {
    const message = syncText(facts, proxies);
    return proxies.synced === proxies.total
      ? { status: "True", reason: "InSync", message }
      : { status: "False", reason: "ProxiesBehind", message };
  }
  switch (wait.cause) {
    case "holds":
      return {
        status: "False",
        reason: "Moving",
        message: movingText(moving.size, wait),
      };
    case "unreported":
      return {
        status: "False",
        reason: "Rebuilding",
        message: `pod ${wait.pod} has not said yet what it holds: nothing new is granted before`,
      };
    case "no-proxy":
      return {
        status: "False",
        reason: "PodsWithoutProxy",
        message: `pod ${wait.pod} carries no proxy and may hold everything: restart it to have it injected`,
      };
    default:
      return wait.cause satisfies never;
  }
}

function movingText(count: number, { namespace, pod }: AppPlan["waits"][number]): string {
  if (namespace === "") return `resources move between subsets as a whole: they wait for pod ${pod}`;
  return `${count} namespaces move: ${namespace} waits for pod ${pod}`;
}

function interceptedVerdict({ pods }: StatusFacts): Verdict {
  const bare = pods.filter(({ proxy, running }) => running && proxy === "none");
  const [first] = bare;
  if (first !== undefined) {
    const message = `${bare.length} running pods carry no proxy and see everything, ${first.name} first: restart them to have it injected`;
    return { status: "False", reason: "PodsWithoutProxy", message };
  }
  return { status: "True", reason: "AllInjected", message: `${pods.length} pods carry the proxy` };
}

function handoverOf({ plan, pods, previous, now }: StatusFacts): HandoverStatus | undefined {
  const waits = plan.waits.filter(({ cause }) => cause === "holds");
  const [wait] = waits;
  if (wait === undefined) return undefined;
  const since = previous?.handover?.since ?? now;
  const from = pods.find(({ name }) => name === wait.pod)?.subset ?? DEFAULT_SUBSET;
  const holders =
    wait.namespace === "" ? [...subsetsByLabels(plan), DEFAULT_SUBSET, ...plan.subsets] : holdersOf(plan.wished, wait.namespace);
  const to = [...holders].find((subset) => subset !== from) ?? DEFAULT_SUBSET;
  const losers = pods.filter(({ subset, ended }) => subset === from && !ended);
  const waiting = new Set(waits.map(({ pod }) => pod));
  return {
    from,
    to,
    phase: "Draining",
    since,
    done: losers.filter(({ name }) => !waiting.has(name)).length,
    total: losers.length,
    waitingOn: waits.slice(0, MAX_WAITING_ON).map(({ namespace, pod }) => ({
      ...(namespace === "" ? {} : { namespace }),
      pod,
      reason: "NotAcknowledged",
      since,
    })),
  };
}

function subsetText(name: string): string {
  return name === DEFAULT_SUBSET ? "the default subset" : `subset "${name}"`;
}
