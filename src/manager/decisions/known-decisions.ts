// The clusters that the PlacementDecisions of each namespace name, for the plans of its apps. The decisions controller sets them.

import { isDeepStrictEqual } from "node:util";
import { createListeners } from "../../base/listeners.ts";
import type { ChosenClusters } from "../apps/chosen-clusters.ts";

export type KnownDecisions = ReturnType<typeof createKnownDecisions>;

export function createKnownDecisions() {
  const byNamespace = new Map<string, ChosenClusters>();
  const changes = createListeners<string>();
  return {
    /** Undefined until they are listed: before that, nobody knows whether one is missing. */
    of: (namespace: string): ChosenClusters | undefined => byNamespace.get(namespace),
    set(namespace: string, chosen: ChosenClusters): void {
      const before = byNamespace.get(namespace);
      byNamespace.set(namespace, chosen);
      if (isDeepStrictEqual(before, chosen)) return;
      changes.tell(namespace);
    },
    forget(namespace: string): void {
      byNamespace.delete(namespace);
    },
    /** Calls the listener with each namespace whose decisions have changed. */
    onChange: changes.add,
  };
}
