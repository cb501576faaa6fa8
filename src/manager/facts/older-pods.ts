// Pods that an older leader may have served so recently that their status does not say so yet: a kubelet writes only afterwards that a
// proxy has had its first snapshot, and the operator runs by then. Of such a pod "has never started" is not believed. What this manager
// serves itself it knows from its own registry. Filled by the VirtualApp controller from what it lists first.
//
//   (not known) => Older    the pod is in the first list of its namespace since this manager leads
//   Older => (believed)     when a kubelet has had its time to write the status
import type { Clock } from "../../base/clock.ts";
import type { Pod } from "../../kube/client/resources.ts";

/** A kubelet writes a changed status at once, and again within 10 s if that failed. */
const STATUS_LAG_MS = 30_000;

export interface OlderPods {
  has(pod: Pod): boolean;
  /**
   * The pod is in the first list of its namespace since this manager leads. However old its status is, an older leader may have told its
   * proxy something, which that still knows after a restart.
   */
  wasListed(pod: Pod): boolean;
  /** The pods of the namespace have been listed. */
  listed(namespace: string, pods: readonly Pod[]): void;
  /** The pods of the namespace are followed no more; if they ever are again, they are listed first. */
  left(namespace: string): void;
  /** Calls the handler with the namespace of which the statuses are believed from now on. */
  onOver(handler: (namespace: string) => void): void;
}

export function createOlderPods({ clock }: { readonly clock: Clock }): OlderPods {
  const uids = new Map<string, ReadonlySet<string | undefined>>();
  /** The namespaces whose statuses are not believed yet. */
  const doubted = new Set<string>();
  const overHandlers: ((namespace: string) => void)[] = [];
  const wasListed = ({ metadata }: Pod) => uids.get(metadata.namespace ?? "")?.has(metadata.uid) ?? false;
  return {
    has: (pod) => doubted.has(pod.metadata.namespace ?? "") && wasListed(pod),
    wasListed,
    listed(namespace, pods) {
      const listed = new Set(pods.map(({ metadata }) => metadata.uid));
      uids.set(namespace, listed);
      doubted.add(namespace);
      clock.after(STATUS_LAG_MS, () => {
        if (uids.get(namespace) === listed) doubted.delete(namespace);
        for (const handler of overHandlers) handler(namespace);
      });
    },
    left(namespace) {
      uids.delete(namespace);
      doubted.delete(namespace);
    },
    onOver: (handler) => void overHandlers.push(handler),
  };
}
