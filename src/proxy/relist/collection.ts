// The type of a collection that a client lists or watches. Invariant: the list and the watch of one informer give equal values. Used by
// relist, the filters and the isolate layer.
import type { GroupResource } from "../../kube/types.ts";

/** A collection as one client requests it. */
export interface Collection extends GroupResource {
  /** "" for all namespaces. */
  readonly namespace: string;
  /** The same for the list and the watch of one informer: path and selectors as the client sent them. */
  readonly shape: string;
}
