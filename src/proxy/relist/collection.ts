// The list or watch of one client, as the other files of relist and the filters compare it. Pure. Invariant: the list and the watch of one
// informer have the same shape. Called by relist, the filters and the isolate layer.
import type { GroupResource } from "../../kube/types.ts";

/** A collection as one client requests it. */
export interface Collection extends GroupResource {
  /** "" for all namespaces. */
  readonly namespace: string;
  /** The same for the list and the watch of one informer: path and selectors as the client sent them. */
  readonly shape: string;
}
