// Whether the manager knows the namespaces of a cluster, and why not, in words for the status. Pure.
import { isStatus } from "../../kube/status.ts";
import type { NamespaceWatch } from "./namespace-watch.ts";
import { isRefusal, MAX_NAMESPACES } from "./remote-namespaces.ts";

/** The reasons why the namespaces of a cluster are known or not. */
export type NamespacesReason =
  | "Listed"
  | "NotListedYet"
  | "SecretNotReadable"
  | "KubeconfigRefused"
  | "Forbidden"
  | "Unreachable"
  | "TooMany";

export interface NamespacesState {
  readonly reason: NamespacesReason;
  readonly message: string;
}

export const NOT_LISTED_YET: NamespacesState = {
  reason: "NotListedYet",
  message: "the manager has not listed the cluster's namespaces yet",
};

/** By what the watch has heard. */
export function watchState({ store, trouble, server }: NamespaceWatch): NamespacesState {
  if (trouble !== undefined) {
    const { message } = trouble;
    if (trouble.code === "TOO_MANY_NAMESPACES")
      return { reason: "TooMany", message: `the cluster has more than ${MAX_NAMESPACES} namespaces` };
    if (isRefusal(trouble)) {
      const isUnknown = isStatus(trouble, "Unauthorized");
      const advice = isUnknown
        ? "it does not accept the token or client certificate of the kubeconfig"
        : "the kubeconfig's user needs list and watch on namespaces";
      return { reason: "Forbidden", message: `${new URL(server).host} refuses the manager (${message}): ${advice}` };
    }
    return { reason: "Unreachable", message: `${new URL(server).host} does not serve the manager: ${message}` };
  }
  if (!store.hasSynced) return NOT_LISTED_YET;
  return { reason: "Listed", message: "the manager watches the cluster's namespaces" };
}
