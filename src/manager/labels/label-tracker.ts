// Follows the objects of one resource, as far as labels concern them. Invariant: an object in memory has its
// names and these labels and nothing else, since the manager follows all objects of the resource.
import type { Clock, Random } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { metadataOnly, type Resource } from "../../kube/client/resource.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import type { KubeObject } from "../../kube/types.ts";
import { createReflector } from "../../runtime/reflector.ts";
import { LABEL_KEYS, missingLabels } from "./right-labels.ts";

export interface LabelTrackerOptions {
  readonly client: Pick<KubeClient, "list" | "watch">;
  readonly resource: Resource;
  /** Called with an object that lacks labels, and without one when the first list is known. */
  readonly onMissing: (object?: KubeObject) => void;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

export interface LabelTracker {
  readonly hasSynced: boolean;
  list(): readonly KubeObject[];
  stop(): Promise<void>;
}

/** Starts to follow: the list of all objects begins after this call. */
export function startLabelTracker({ resource, onMissing, ...options }: LabelTrackerOptions): LabelTracker {
  const reflector = createReflector({ ...options, resource: metadataOnly(resource), transform: namesAndLabels });
  const { store } = reflector;
  store.onChange((change) => {
    const isMissing = change.type !== "deleted" && missingLabels(resource, change.object) !== undefined;
    if (isMissing && store.hasSynced) onMissing(change.object);
  });
  void store.synced.then(() => onMissing());
  void reflector.start(new AbortController().signal);
  return {
    get hasSynced() {
      return store.hasSynced;
    },
    list: () => store.list(),
    stop: () => reflector.stop(),
  };
}

function namesAndLabels({
  metadata: { name = "", namespace, uid = "", resourceVersion = "", labels = {} },
}: KubeObject): KubeObject {
  const kept = Object.fromEntries(LABEL_KEYS.flatMap((key) => (labels[key] === undefined ? [] : [[key, labels[key]]])));
  return { metadata: { name, ...(namespace === undefined ? {} : { namespace }), uid, resourceVersion, labels: kept } };
}
