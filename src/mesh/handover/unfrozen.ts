// The pods that may still write in a frozen namespace, whoever owns it. Pure. Invariant: a pod is missing only if its proxy
// enforces the freeze, or if nothing of it can write. The fences do not show these pods, since a freeze moves nothing.
import { FREEZE } from "../contract/route-type.ts";
import type { AppRef, FrozenNamespace, Snapshot } from "../ownership/snapshot.ts";
import type { AppPod } from "./app-pod.ts";
import { type GoneAppPod, isOfApp, isOver, snapshotsOf } from "./claims.ts";
import { type FactsOf, type ProxyFacts, podKey } from "./proxy-facts.ts";

export interface UnfrozenPod {
  /** "" with the cause "just-listed", as in Claim. */
  readonly podName: string;
  readonly cause: UnfrozenCause;
}

type UnfrozenCause =
  | "no-proxy"
  /** The proxy acknowledges a freeze and does not know it. */
  | "older-proxy"
  /** The proxy may enforce routes without the freeze. */
  | "behind"
  /** The pod's object is gone, and the API server may still accept its token. */
  | "pod-gone"
  | "unreported"
  | "just-listed";

interface FrozenFacts {
  readonly app: AppRef;
  readonly frozen: readonly FrozenNamespace[] | undefined;
  readonly pods: readonly AppPod[];
  readonly factsOf: FactsOf;
  readonly gone: readonly GoneAppPod[];
}

export function unfrozenPods({ app, frozen = [], pods, factsOf, gone }: FrozenFacts): UnfrozenPod[] {
  if (frozen.length === 0) return [];
  const freezesAll = createTest(app, frozen);
  const live = pods.flatMap((pod) => unfrozen(pod, factsOf(podKey(pod)), freezesAll));
  const removed = gone.flatMap((each): UnfrozenPod[] => {
    if (each === "unknown") return [{ podName: "", cause: "just-listed" }];
    // As for claims, the last status of a removed pod proves nothing.
    const pod = { ...each.pod, running: true, ended: false };
    return unfrozen(pod, each.facts, freezesAll).map(({ podName }) => ({ podName, cause: "pod-gone" }));
  });
  return [...live, ...removed];
}

function unfrozen(pod: AppPod, facts: ProxyFacts | undefined, freezesAll: (snapshot: Snapshot) => boolean): UnfrozenPod[] {
  const because = (cause: UnfrozenCause): UnfrozenPod[] => [{ podName: pod.name, cause }];
  if (isOver(pod, facts)) return [];
  if (pod.proxy === "none" && pod.running) return because("no-proxy");
  if (facts === undefined) return pod.proxy === "none" || !pod.running ? [] : because("unreported");
  if (facts.mayHoldMore) return because("unreported");
  const snapshots = snapshotsOf(pod, facts);
  if (snapshots.length > 0 && !facts.capabilities.has(FREEZE)) return because("older-proxy");
  return snapshots.every(freezesAll) ? [] : because("behind");
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
