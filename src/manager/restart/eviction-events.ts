// Events about an evicted pod: on the pod and on its workload, where people look first when pods restart.
// Called where the manager evicts pods.
import { plainText } from "../../base/plain-text.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { EventRecorder } from "../../runtime/events.ts";

/** Longer names are cut: they come from objects of users. */
const MAX_NAME = 253;

/**
 * @param app the source object of the app
 * @param pod with its owner references, as the watch knows it
 * @param why the end of the sentence "ctrlmesh evicts pod NAME ..."
 */
export function recordEviction(events: Pick<EventRecorder, "event">, app: KubeObject, pod: KubeObject, why: string): void {
  const { namespace, name = "" } = pod.metadata;
  const source = `${app.kind ?? "app"} ${plainText(app.metadata.name ?? "", MAX_NAME)}`;
  const message = `ctrlmesh evicts pod ${plainText(name, MAX_NAME)}: ${why} (${source})`;
  events.event({ ...pod, apiVersion: "v1", kind: "Pod" }, "Normal", "EvictedPod", message);
  const owner = pod.metadata.ownerReferences?.find(({ controller }) => controller === true);
  if (owner === undefined) return;
  const { apiVersion, kind, uid } = owner;
  const metadata = { name: owner.name, uid, ...(namespace === undefined ? {} : { namespace }) };
  events.event({ apiVersion, kind, metadata }, "Normal", "EvictedPod", message);
}
