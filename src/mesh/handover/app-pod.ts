// A pod of an app, as far as the handover depends on it. The manager makes it from the pod's object (src/manager/facts/app-pods.ts).
import type { PodRef } from "../contract/messages.ts";

export interface AppPod extends PodRef {
  readonly subset: string;
  /** The pod carries the proxy of this app, a proxy of another or an unknown app, or no proxy. */
  readonly proxy: "own" | "other-app" | "none";
  /** The app in the pod's label, if the proxy belongs to another app. */
  readonly injectedFor?: string | undefined;
  /** The pod's operator may run. */
  readonly running: boolean;
  /** Its proxy, a native sidecar, has ended or was restarted, and no container after it has ever started. */
  readonly unstarted?: true;
  readonly ended: boolean;
  readonly ready: boolean;
  /** When it was created, in milliseconds, if no container has run since then, apart from its proxy. */
  readonly neverRanSinceMs?: number;
  readonly terminating: boolean;
  /** Its node, if Kubernetes has deleted the pod because of the node. If the node is off, the pod stays. */
  readonly leftNode?: string;
  readonly controlled: boolean;
  /** The app selects the pod, but its labels do not match PodSelection.checkedSelector. */
  readonly mismatched?: true;
}
