// Gives a new pod of a sharded StatefulSet the revision that the record of the rollout has for it. With
// OnDelete the StatefulSet's controller makes every pod by the present template, so a pod that is deleted
// before its turn would come back with the new revision.
import { SHARDING_CONFIGS } from "../../../api/resources.ts";
import { fieldAt } from "../../../api/rule.ts";
import { ROLL_EXPECTED, ROLLING } from "../../../api/sharding-keys.ts";
import { isControlledBy } from "../../../kube/client/owner.ts";
import type { ObjectRef, Resource } from "../../../kube/client/resource.ts";
import { CONTROLLER_REVISIONS, type ControllerRevision, REVISION_LABEL, STATEFUL_SETS } from "../../../kube/client/resources.ts";
import type { KubeClient } from "../../../kube/client/types.ts";
import type { KubeObject } from "../../../kube/types.ts";
import { getIfThere } from "../../../runtime/patch-current.ts";
import type { Store } from "../../../runtime/store.ts";
import type { App } from "../../apps/app.ts";
import type { PodManifest } from "../../injection/pod-manifest.ts";
import { type Template, withTemplate } from "../../rollout/old-template.ts";
import { expectedRevision, parseRecord } from "../../rollout/roll-facts.ts";
import type { Caller } from "../server/webhook.ts";
import { READ_TIMEOUT_MS, type ReadLimit } from "./review-reads.ts";

/** Undefined if the pod stays as it is. @throws an error if the API server does not answer */
export type KeepRevision = (app: App, pod: PodManifest, caller: Caller) => Promise<PodManifest | undefined>;

interface RevisionKeeperOptions {
  readonly client: Pick<KubeClient, "get">;
  /** A StatefulSet without the label `rolling` in this store is not read from the API server. */
  readonly statefulSets: Pick<Store<KubeObject>, "get">;
  readonly limit: ReadLimit;
}

export function createRevisionKeeper({ client, statefulSets, limit }: RevisionKeeperOptions): KeepRevision {
  return async (app, pod, { address, signal }) => {
    const target = fieldAt(app.object, "spec", "root", "targetStatefulSet");
    const { name = "", labels = {} } = pod.metadata as KubeObject["metadata"];
    const revision = labels[REVISION_LABEL];
    if (app.ref.kind !== SHARDING_CONFIGS.kind || typeof target !== "string" || revision === undefined) return undefined;
    const { namespace } = app.ref;
    const call = { signal, timeoutMs: READ_TIMEOUT_MS, maxRetries: 0 };
    const read = <T extends KubeObject>(resource: Resource<T>, ref: ObjectRef) =>
      limit(address, () => getIfThere(client, resource, ref, call));
    // Only a pod of a rollout causes reads. A store that lags does not have the label yet: then the rollout
    // has just begun, and has no record of any pod.
    const seen = statefulSets.get(target, namespace);
    const hasNoRollout =
      seen !== undefined && (seen.metadata.labels?.[ROLLING] === undefined || !isControlledBy(pod as KubeObject, seen));
    if (hasNoRollout) return undefined;
    const statefulSet = await read(STATEFUL_SETS, { namespace, name: target });
    if (statefulSet === undefined || !isControlledBy(pod as KubeObject, statefulSet)) return undefined;
    const { metadata, spec } = statefulSet;
    // The StatefulSet's controller would restart the pod again and again under another strategy.
    if (metadata.labels?.[ROLLING] === undefined || spec?.updateStrategy?.type !== "OnDelete") return undefined;
    const root = await read(SHARDING_CONFIGS, app.ref);
    const record = parseRecord(root?.metadata.annotations?.[ROLL_EXPECTED]);
    const expected = record && expectedRevision(record, name);
    if (expected === undefined || expected === revision) return undefined;
    const [from, to] = await Promise.all(
      [revision, expected].map((each) => read(CONTROLLER_REVISIONS, { namespace, name: each })),
    );
    if (from === undefined || to === undefined) return undefined;
    // Otherwise the patch would show parts of any revision of the namespace that a label names.
    if (!isControlledBy(from, statefulSet) || !isControlledBy(to, statefulSet)) return undefined;
    const kept = withTemplate(pod, templateOf(from), templateOf(to));
    return { ...kept, metadata: { ...kept.metadata, labels: { ...kept.metadata.labels, [REVISION_LABEL]: expected } } };
  };
}

function templateOf({ data }: ControllerRevision): Template {
  return (data?.spec?.template ?? {}) as Template;
}
