// Pods whose objects are gone and that may write all the same: an object that is removed by force (a lost node, `kubectl delete
// --force`) says nothing about its processes, and kube-apiserver takes its token for some time more. Followed in every replica, since
// the next leader has to know who was removed just before. Invariant: a pod leaves this list only when it is certain that it writes
// no more, or by time. Filled by the watches of pods, read by the VirtualApp reconciler.
//
//   (there) => Gone     when the object is removed before its containers were seen to end
//   Gone => (over)      after the grace time
//
// Of a namespace whose pods this replica has not followed for the grace time, nobody knows who was removed before: such a namespace
// has one entry without a pod until then.
import type { Clock } from "../../base/clock.ts";
import type { Pod } from "../../kube/client/resources.ts";
import { hasEnded } from "./app-pods.ts";
import type { PodWatch } from "./pod-watch.ts";
import type { ProxyFacts } from "./proxy-facts.ts";

/** Beyond the API server's token cache: time for its own view of pods to follow, and for a request that it has just let in. */
const MARGIN_MS = 2_000;

export interface GonePod {
  /** As it was seen last; undefined: whoever was removed before this replica followed the pods. */
  readonly pod: Pod | undefined;
  /** What was known of its proxy then; undefined: nothing. */
  readonly facts: ProxyFacts | undefined;
}

/** The gone pods of namespaces. */
export interface GoneLists {
  list(namespace: string): readonly GonePod[];
}

export interface GonePods extends GoneLists {
  /** A pod's object is gone. @param facts what its proxy was known to hold; nothing is told to it any more */
  removed(pod: Pod, facts: ProxyFacts | undefined): void;
  /** The pods of the namespace have been listed. Removed as well is who was followed before and is not among them. */
  listed(namespace: string, pods: readonly Pod[]): void;
  /** The pods of the namespace are followed no more. */
  left(namespace: string): void;
  /** Calls the handler with the namespace of each entry whose time is over. */
  onOver(handler: (namespace: string) => void): void;
}

export interface GonePodsOptions {
  readonly clock: Clock;
  /** How long kube-apiserver accepts a token that it has found valid, in milliseconds. A removed pod counts for 2 s more than that. */
  readonly tokenCacheMs: number;
}

export function createGonePods({ clock, tokenCacheMs }: GonePodsOptions): GonePods & {
  /** Follows the pods in a replica that does not lead. The returned function ends that, for `listed` to go on from there. */
  follow(watch: PodWatch): () => void;
} {
  const graceMs = tokenCacheMs + MARGIN_MS;
  const entries = new Map<string, Set<GonePod>>();
  const sinceMs = new Map<string, number>();
  const followed = new Map<string, readonly Pod[]>();
  const overHandlers: ((namespace: string) => void)[] = [];

  const keep = (namespace: string, entry: GonePod, forMs: number) => {
    const own = entries.get(namespace) ?? new Set();
    entries.set(namespace, own.add(entry));
    clock.after(forMs, () => {
      own.delete(entry);
      if (own.size === 0) entries.delete(namespace);
      for (const handler of overHandlers) handler(namespace);
    });
  };
  const removed = (pod: Pod, facts: ProxyFacts | undefined) => {
    if (!isHarmless(pod, facts)) keep(pod.metadata.namespace ?? "", { pod, facts }, graceMs);
  };
  const ageMs = (namespace: string) => {
    const nowMs = clock.monotonicMs();
    const since = sinceMs.get(namespace) ?? nowMs;
    sinceMs.set(namespace, since);
    return nowMs - since;
  };
  const left = (namespace: string) => {
    sinceMs.delete(namespace);
    followed.delete(namespace);
  };

  return {
    list: (namespace) => [...(entries.get(namespace) ?? [])],
    removed,
    listed(namespace, pods) {
      const there = new Set(pods.map(({ metadata }) => metadata.uid));
      for (const pod of followed.get(namespace) ?? []) if (!there.has(pod.metadata.uid)) removed(pod, undefined);
      followed.delete(namespace);
      const leftMs = graceMs - ageMs(namespace);
      if (leftMs > 0) keep(namespace, { pod: undefined, facts: undefined }, leftMs);
    },
    left,
    onOver: (handler) => void overHandlers.push(handler),
    follow(watch) {
      let isOn = true;
      watch.onListed((namespace) => void (isOn && ageMs(namespace)));
      watch.onLeft((namespace) => void (isOn && left(namespace)));
      watch.onChange(({ type, object }) => void (isOn && type === "deleted" && removed(object, undefined)));
      return () => {
        isOn = false;
        for (const namespace of sinceMs.keys()) followed.set(namespace, watch.list(namespace) ?? []);
      };
    },
  };
}

/** Its containers have ended, as a kubelet says before it removes the object in the ordinary way, or none was ever started. */
function isHarmless(pod: Pod, facts: ProxyFacts | undefined): boolean {
  if (facts?.connected) return false;
  return hasEnded(pod) || (facts === undefined && isUnscheduled(pod));
}

// A pod that has a node may run there before its kubelet has said so.
function isUnscheduled({ spec, status }: Pod): boolean {
  return (spec?.nodeName ?? "") === "" && (status?.phase ?? "Pending") === "Pending";
}
