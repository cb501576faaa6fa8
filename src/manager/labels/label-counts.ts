// Which objects of one resource lack labels. Invariant: the cost of a change does not depend on the number of
// objects. The cost of reading the counts grows with the namespaces and with the objects that lack labels only.

import type { GroupResource, KubeObject } from "../../kube/types.ts";
import type { Change } from "../../runtime/store.ts";
import { keyOf } from "../../runtime/store.ts";
import type { MissingLabels } from "./patcher.ts";
import { missingLabels } from "./right-labels.ts";

export interface LabelCounts {
  readonly total: number;
  readonly labelled: number;
}

interface NamespaceCounts {
  readonly names: Set<string>;
  readonly missing: Map<string, MissingLabels>;
}

export function createLabelCounts(of: GroupResource) {
  const byNamespace = new Map<string, NamespaceCounts>();
  return {
    see({ type, object }: Change<KubeObject>): void {
      const { name = "", namespace = name } = object.metadata;
      const key = keyOf(name, object.metadata.namespace);
      const counts: NamespaceCounts = byNamespace.get(namespace) ?? { names: new Set(), missing: new Map() };
      counts.names.delete(key);
      counts.missing.delete(key);
      if (type !== "deleted") {
        counts.names.add(key);
        const labels = missingLabels(of, object);
        if (labels !== undefined) counts.missing.set(key, { object, labels });
      }
      if (counts.names.size === 0) byNamespace.delete(namespace);
      else byNamespace.set(namespace, counts);
    },
    /** @param isLeftOut names a namespace whose objects count neither as labelled nor as missing */
    read(isLeftOut: (namespace: string) => boolean): LabelCounts & { readonly missing: readonly MissingLabels[] } {
      const counted = [...byNamespace].flatMap(([namespace, counts]) => (isLeftOut(namespace) ? [] : [counts]));
      const missing = counted.flatMap((counts) => [...counts.missing.values()]);
      const total = counted.reduce((sum, { names }) => sum + names.size, 0);
      return { total, labelled: total - missing.length, missing };
    },
  };
}
