// The pods that may still write in a frozen namespace, whoever owns it. Pure. Invariant: a pod is missing only if its proxy
// enforces the freeze, or if nothing of it can write. The fences do not show these pods, since a freeze moves nothing.
import { CLUSTER_FREEZE, FREEZE } from "../contract/route-type.ts";
import { type ClusterRoute, mayReach } from "../ownership/clusters.ts";
import { type FrozenNamespace, frozenPlaceOf } from "../ownership/frozen-places.ts";
import type { AppRef, Snapshot } from "../ownership/snapshot.ts";
import type { AppPod } from "./app-pod.ts";
import { type GoneAppPod, isOfApp, isOver, snapshotsOf } from "./claims.ts";
import { type FactsOf, type ProxyFacts, podKey } from "./proxy-facts.ts";

export interface UnfrozenPod {
  /** "" with the cause "just-listed", as in Claim. */
  readonly podName: string;
  readonly cause: UnfrozenCause;
  /** The other cluster in which the namespaces are. Absent: home. */
  readonly cluster?: string;
}

type UnfrozenCause =
  | "no-proxy"
  /** The proxy acknowledges a freeze and does not know it. */
  | "older-proxy"
  /** The proxy may enforce routes without the freeze. */
  | "behind"
  /** The pod's object is gone. The API server may still accept its token, or another cluster may still work on its last requests. */
  | "pod-gone"
  | "unreported"
  | "just-listed";

/** A freeze that stops nobody, since the proxies do not serve the operator's requests to its cluster. */
export interface UnheldFreeze {
  readonly cluster: string;
  readonly namespace: string;
  /** The interception of the cluster. Undefined: the app divides no cluster of that name. */
  readonly interception: "Tunnel" | "None" | undefined;
}

interface FrozenFacts {
  readonly app: AppRef;
  readonly frozen: readonly FrozenNamespace[] | undefined;
  /** Those that the app divides. Absent: none. */
  readonly clusters?: readonly ClusterRoute[] | undefined;
  readonly pods: readonly AppPod[];
  readonly factsOf: FactsOf;
  readonly gone: readonly GoneAppPod[];
  /** The same for requests to other clusters. */
  readonly goneAbroad?: readonly GoneAppPod[] | undefined;
}

export function unfrozenPods({ app, frozen = [], clusters = [], goneAbroad = [], ...facts }: FrozenFacts): UnfrozenPod[] {
  const byCluster = Map.groupBy(frozen, ({ namespace }) => frozenPlaceOf(namespace).cluster);
  return [...byCluster].flatMap(([name, places]): UnfrozenPod[] => {
    const freezesAll = createTest(app, places);
    if (name === undefined) return podsThatMayWrite({ ...facts, capability: FREEZE, holds: freezesAll });
    const cluster = clusters.find((each) => each.name === name);
    if (cluster?.upstream === undefined) return [];
    const isServed = (view: Snapshot) => !cluster.servers.some((server) => mayReach(view, server));
    const holds = (view: Snapshot) => freezesAll(view) && isServed(view);
    return podsThatMayWrite({ ...facts, gone: goneAbroad, capability: CLUSTER_FREEZE, holds }).map((pod) => ({
      ...pod,
      cluster: name,
    }));
  });
}

/** @param clusters those that the app divides; undefined: none */
export function unheldFreezes(
  frozen: readonly FrozenNamespace[] = [],
  clusters: readonly ClusterRoute[] = [],
): readonly UnheldFreeze[] {
  return frozen.flatMap(({ namespace: name }) => {
    const { cluster, namespace } = frozenPlaceOf(name);
    const route = clusters.find((each) => each.name === cluster);
    if (cluster === undefined || route?.upstream !== undefined) return [];
    return [{ cluster, namespace, interception: route && (route.isOpen ? "None" : "Tunnel") }];
  });
}

/** The pods, and how to judge them for the frozen namespaces of one cluster. */
interface PodsOfPlaces extends Pick<FrozenFacts, "pods" | "factsOf" | "gone"> {
  /** That of a proxy that enforces the freezes. */
  readonly capability: string;
  /** True if the routes have the freezes. */
  holds(snapshot: Snapshot): boolean;
}

function podsThatMayWrite({ pods, factsOf, gone, ...tests }: PodsOfPlaces): UnfrozenPod[] {
  const live = pods.flatMap((pod) => unfrozen(pod, factsOf(podKey(pod)), tests));
  const removed = gone.flatMap((each): UnfrozenPod[] => {
    if (each === "unknown") return [{ podName: "", cause: "just-listed" }];
    // As for claims, the last status of a removed pod proves nothing.
    const pod = { ...each.pod, running: true, ended: false };
    return unfrozen(pod, each.facts, tests).map(({ podName }) => ({ podName, cause: "pod-gone" }));
  });
  return [...live, ...removed];
}

function unfrozen(pod: AppPod, facts: ProxyFacts | undefined, { capability, holds }: Pick<PodsOfPlaces, "capability" | "holds">) {
  const because = (cause: UnfrozenCause): UnfrozenPod[] => [{ podName: pod.name, cause }];
  if (isOver(pod, facts)) return [];
  if (pod.proxy === "none" && pod.running) return because("no-proxy");
  if (facts === undefined) return pod.proxy === "none" || !pod.running ? [] : because("unreported");
  if (facts.mayHoldMore) return because("unreported");
  const snapshots = snapshotsOf(pod, facts);
  if (snapshots.length > 0 && !facts.capabilities.has(capability)) return because("older-proxy");
  return snapshots.every(holds) ? [] : because("behind");
}

/** A test for snapshots of the app that freeze these namespaces. The pods of a subset share their snapshot. */
function createTest(app: AppRef, frozen: readonly FrozenNamespace[]): (snapshot: Snapshot) => boolean {
  const known = new Map<Snapshot, boolean>();
  return (snapshot) => {
    const before = known.get(snapshot);
    if (before !== undefined) return before;
    const names = new Set(snapshot.frozen?.map(({ namespace }) => namespace));
    const isFrozen = isOfApp(app, snapshot) && frozen.every(({ namespace }) => names.has(namespace));
    known.set(snapshot, isFrozen);
    return isFrozen;
  };
}
