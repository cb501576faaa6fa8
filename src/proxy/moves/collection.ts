// A collection that a client lists or watches: the objects of one resource, in all namespaces or in one. Used by the move log, the
// filters and the isolate layer.
import type { GroupResource } from "../../kube/types.ts";

/** A collection as one client requests it. */
export interface Collection extends GroupResource {
  /** "" for all namespaces. */
  readonly namespace: string;
  /** The client sees no object of a namespace, so that moves of namespaces do not concern it. Absent is false. */
  readonly isOutsideNamespaces?: boolean;
}
