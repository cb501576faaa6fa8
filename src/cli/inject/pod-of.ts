// The pod that a workload would create, of a manifest. Pure.
import { z } from "zod";
import type { KubeObject } from "../../kube/types.ts";
import type { FileObject } from "../apps/read-objects.ts";

const TEXTS = z.record(z.string(), z.string()).nullish();
const METADATA = z.looseObject({
  name: z.string().optional(),
  generateName: z.string().optional(),
  namespace: z.string().optional(),
  labels: TEXTS,
  annotations: TEXTS,
});
const SPEC = z.looseObject({ volumes: z.array(z.looseObject({})).nullish() });
const TEMPLATE = z.looseObject({ metadata: METADATA.nullish(), spec: SPEC });
const POD = z.looseObject({ metadata: METADATA, spec: SPEC });
const CLAIM = z.looseObject({ metadata: z.looseObject({ name: z.string() }) });
const WORKLOAD = z.looseObject({
  metadata: METADATA,
  spec: z.looseObject({ template: TEMPLATE, volumeClaimTemplates: z.array(CLAIM).nullish() }),
});

/** The kinds whose pods have the form of `spec.template`. */
const WORKLOADS = ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job"];

export function hasPods({ kind }: FileObject): boolean {
  return kind === "Pod" || WORKLOADS.includes(String(kind));
}

/** @param home the namespace of a manifest without one @returns undefined: the manifest is none */
export function podOf(object: FileObject, home: string): KubeObject | undefined {
  if (object.kind === "Pod") {
    const { data } = POD.safeParse(object);
    return data && pod({ ...newName(data.metadata), namespace: data.metadata.namespace ?? home }, data.spec);
  }
  const { data } = WORKLOAD.safeParse(object);
  if (data === undefined) return undefined;
  const { name = "", namespace = home } = data.metadata;
  const { template, volumeClaimTemplates } = data.spec;
  const { labels, annotations } = template.metadata ?? {};
  const first = `${name}-0`;
  const isSet = object.kind === "StatefulSet";
  const ofSet = { "statefulset.kubernetes.io/pod-name": first, "apps.kubernetes.io/pod-index": "0" };
  const claims = (volumeClaimTemplates ?? []).map(({ metadata }) => ({
    name: metadata.name,
    persistentVolumeClaim: { claimName: `${metadata.name}-${first}` },
  }));
  const metadata = { generateName: `${name}-`, namespace, labels: { ...labels, ...(isSet && ofSet) }, annotations };
  return pod(metadata, { ...template.spec, volumes: [...(template.spec.volumes ?? []), ...claims] });
}

/** A pod of that name may be there already. */
function newName({ name, ...metadata }: z.output<typeof METADATA>): object {
  return name === undefined ? metadata : { ...metadata, generateName: `${name}-` };
}

function pod(metadata: object, spec: object): KubeObject {
  return { apiVersion: "v1", kind: "Pod", metadata, spec } as KubeObject;
}
