// What pods may have done while this replica did not watch them: each may have written or received routes. So
// three times follow from the first list of a namespace's pods:
//
//   grace time                  the pods that were removed just before are not known: the namespace has one entry without a pod
//   status lag                  "never started" is not believed: an earlier leader may have served the listed pods
//   while it watches the pods   the proxies of the listed pods may know routes from an earlier leader
//
// A removed pod counts for the grace time: a removal by force (a lost node, `kubectl delete --force`) says
// nothing about its processes, and kube-apiserver accepts its token for some time more.
import type { Clock } from "../../base/clock.ts";
import type { Pod } from "../../kube/client/resources.ts";
import { type PodKey, type ProxyFacts, podKey, snapshotsIn } from "../../mesh/handover/proxy-facts.ts";
import { PROOF_MS } from "../../mesh/ownership/clusters.ts";
import { hasEnded } from "./app-pods.ts";
import type { PodWatch } from "./pod-watch.ts";

/** Time for the API server to see the removal, and to end a request that it has just accepted. */
const MARGIN_MS = 2_000;
/** A kubelet writes a changed status immediately, and again within 10 s if that failed. */
const STATUS_LAG_MS = 30_000;

export interface GonePod {
  /** The last seen object; undefined for a pod that was removed before this replica followed the pods. */
  readonly pod: Pod | undefined;
  /** The facts about its proxy at that time; undefined if there were none. */
  readonly facts: ProxyFacts | undefined;
}

export type PodHistory = ReturnType<typeof createPodHistory>;

/** What reconcilers read. */
export type PastOfPods = Pick<PodHistory, "gone" | "goneAbroad" | "mayHaveEarlierRoutes" | "isStatusLate">;

interface PodHistoryOptions {
  readonly clock: Clock;
  /** How long kube-apiserver accepts a token that it has found valid. The grace time is 2 s longer. */
  readonly tokenCacheMs: number;
  /** How long the last request of a pod may run in another cluster; 0 (the default): its app divides none. */
  readonly longestDrainMs?: (namespace: string) => number;
}

interface Listed {
  readonly uids: ReadonlySet<string | undefined>;
  isStatusLate: boolean;
}

export function createPodHistory({ clock, tokenCacheMs, longestDrainMs = () => 0 }: PodHistoryOptions) {
  const graceMs = tokenCacheMs + MARGIN_MS;
  const [gone, abroad] = [new Map<string, Set<GonePod>>(), new Map<string, Set<GonePod>>()];
  const sinceMs = new Map<string, number>();
  const followed = new Map<string, readonly Pod[]>();
  const listed = new Map<string, Listed>();
  const overHandlers: ((namespace: string) => void)[] = [];

  const over = (namespace: string) => {
    for (const handler of overHandlers) handler(namespace);
  };
  const keep = (kept: typeof gone, namespace: string, entry: GonePod, forMs: number) => {
    if (forMs <= 0) return;
    const own = kept.get(namespace) ?? new Set();
    kept.set(namespace, own.add(entry));
    clock.after(forMs, () => {
      own.delete(entry);
      if (own.size === 0) kept.delete(namespace);
      over(namespace);
    });
  };
  /** How long the pod's last request may run in another cluster. Its routes may have one whose MeshCluster has changed or is gone. */
  const drainMs = (namespace: string, facts?: ProxyFacts) => {
    const enforced = facts === undefined ? [] : snapshotsIn(facts).flatMap(({ clusters = [] }) => clusters);
    return Math.max(longestDrainMs(namespace), ...enforced.map((cluster) => cluster.drainMs));
  };
  /** How long a pod that was removed by force may write in other clusters; 0 if there are none. */
  const abroadMs = (namespace: string, facts?: ProxyFacts) => {
    const lastMs = drainMs(namespace, facts);
    return lastMs === 0 ? 0 : graceMs + PROOF_MS + lastMs;
  };
  const removed = (pod: Pod, facts: ProxyFacts | undefined) => {
    const { namespace = "" } = pod.metadata;
    if (isHarmless(pod, facts)) return;
    keep(gone, namespace, { pod, facts }, graceMs);
    keep(abroad, namespace, { pod, facts }, abroadMs(namespace, facts));
  };
  const startAge = (namespace: string) => {
    if (!sinceMs.has(namespace)) sinceMs.set(namespace, clock.monotonicMs());
  };
  const left = (namespace: string) => {
    sinceMs.delete(namespace);
    followed.delete(namespace);
    listed.delete(namespace);
  };
  const listedWith = ({ metadata }: Pod) => {
    const entry = listed.get(metadata.namespace ?? "");
    return entry?.uids.has(metadata.uid) ? entry : undefined;
  };

  return {
    /** The removed pods that may still write. */
    gone: (namespace: string): readonly GonePod[] => [...(gone.get(namespace) ?? [])],
    /** The removed and ended pods whose requests may still run in other clusters. */
    goneAbroad: (namespace: string): readonly GonePod[] => [...(abroad.get(namespace) ?? [])],
    /** All containers of the pod have ended, as its kubelet has just reported: its last requests may still run. */
    ended(pod: Pod, facts: ProxyFacts | undefined): void {
      const { namespace = "" } = pod.metadata;
      keep(abroad, namespace, { pod, facts }, drainMs(namespace, facts));
    },
    mayHaveEarlierRoutes: (pod: Pod) => listedWith(pod) !== undefined,
    isStatusLate: (pod: Pod) => listedWith(pod)?.isStatusLate ?? false,
    removed,
    /** A known pod that is missing from the list was removed. */
    listed(namespace: string, pods: readonly Pod[]): void {
      const uids = new Set(pods.map(({ metadata }) => metadata.uid));
      for (const pod of followed.get(namespace) ?? []) if (!uids.has(pod.metadata.uid)) removed(pod, undefined);
      followed.delete(namespace);
      startAge(namespace);
      const ageMs = clock.monotonicMs() - (sinceMs.get(namespace) ?? 0);
      const unknown = { pod: undefined, facts: undefined };
      keep(gone, namespace, unknown, graceMs - ageMs);
      keep(abroad, namespace, unknown, abroadMs(namespace) - ageMs);
      const entry = { uids, isStatusLate: true };
      listed.set(namespace, entry);
      clock.after(STATUS_LAG_MS, () => {
        entry.isStatusLate = false;
        over(namespace);
      });
    },
    left,
    /** With a namespace when a grace time there is over. */
    onOver: (handler: (namespace: string) => void): void => void overHandlers.push(handler),
    /** Follows the pods in a replica that does not lead. The result ends that; `listed` goes on from there. */
    follow(watch: PodWatch): () => void {
      let isOn = true;
      watch.onListed((namespace) => {
        if (isOn) startAge(namespace);
      });
      watch.onLeft((namespace) => {
        if (isOn) left(namespace);
      });
      watch.onChange(({ type, object }) => {
        if (isOn && type === "deleted") removed(object, undefined);
      });
      return () => {
        isOn = false;
        for (const namespace of sinceMs.keys()) followed.set(namespace, watch.list(namespace) ?? []);
      };
    },
  };
}

/** True if no container ever started, or all have ended, as a kubelet reports before an ordinary removal. */
function isHarmless(pod: Pod, facts: ProxyFacts | undefined): boolean {
  if (facts?.connected) return false;
  return hasEnded(pod) || (facts === undefined && isUnscheduled(pod));
}

function isUnscheduled({ spec, status }: Pod): boolean {
  return (spec?.nodeName ?? "") === "" && (status?.phase ?? "Pending") === "Pending";
}

/** Connects history and registry with the leader's pod watch. Call it before any controller subscribes. */
export function recordPods(
  pods: PodWatch,
  history: PodHistory,
  registry: {
    readonly pods: Iterable<PodKey>;
    facts(pod: PodKey): ProxyFacts | undefined;
    forget(pod: PodKey): ProxyFacts | undefined;
  },
): void {
  pods.onListed((namespace) => history.listed(namespace, pods.list(namespace) ?? []));
  pods.onChange((change) => {
    const { type, object } = change;
    const { namespace = "", name = "" } = object.metadata;
    if (type === "updated" && hasEnded(object) && !hasEnded(change.previous)) {
      history.ended(object, registry.facts(podKey({ namespace, name })));
    }
    if (type !== "deleted") return;
    // The history keeps the pod's claims while it may still write. A new pod of the same name is another pod.
    history.removed(object, registry.forget(podKey({ namespace, name })));
  });
  pods.onLeft((namespace) => {
    history.left(namespace);
    // The watch no longer reports the end of these pods.
    for (const key of [...registry.pods]) if (key.startsWith(`${namespace}/`)) registry.forget(key);
  });
}
