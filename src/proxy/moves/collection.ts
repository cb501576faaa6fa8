// A collection that a client lists or watches: the objects of one resource, in all namespaces or in one.
import type { GroupResource } from "../../kube/types.ts";
import type { ResourceScope } from "../../route/plan-query.ts";

/** A collection as one client requests it. */
export interface Collection extends GroupResource {
  /** "" for all namespaces. */
  readonly namespace: string;
  /**
   * Whether moves of namespaces concern it, of buckets of the cluster scope, or, with "unknown" (the
   * default), perhaps both.
   */
  readonly scope?: ResourceScope;
}
