// The clusters that the PlacementDecisions of each namespace name, for the plans of its apps. The decisions controller sets them.
import { isDeepStrictEqual } from "node:util";
import type { ChosenClusters } from "../apps/chosen-clusters.ts";

export type KnownDecisions = ReturnType<typeof createKnownDecisions>;

export function createKnownDecisions() {
  const byNamespace = new Map<string, ChosenClusters>();
  const listeners = new Set<(namespace: string) => void>();
  return {
    /** Undefined until they are listed: before that, nobody knows whether one is missing. */
    of: (namespace: string): ChosenClusters | undefined => byNamespace.get(namespace),
    set(namespace: string, chosen: ChosenClusters): void {
      const before = byNamespace.get(namespace);
      byNamespace.set(namespace, chosen);
      if (isDeepStrictEqual(before, chosen)) return;
      for (const listener of listeners) listener(namespace);
    },
    forget(namespace: string): void {
      byNamespace.delete(namespace);
    },
    /** Calls the listener with each namespace whose decisions have changed. */
    onChange(listener: (namespace: string) => void): () => void {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
