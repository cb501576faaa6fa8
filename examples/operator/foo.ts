// The kind Foo (test/operators/go-foo/crd.yaml): the desired ConfigMap and status of an object. Pure.
import type { KubernetesObject, V1ConfigMap, V1OwnerReference } from "@kubernetes/client-node";

export const FOO = { group: "demo.ctrlmesh.io", version: "v1", plural: "foos", kind: "Foo" } as const;

export interface FooStatus {
  /** The pod that last reconciled it. */
  readonly reconciledBy?: string;
  /** Grows by one for each new generation, and for each new pod. */
  readonly count?: number;
  readonly observedGeneration?: number;
}

export interface Foo extends KubernetesObject {
  readonly spec?: { readonly message?: string };
  readonly status?: FooStatus;
}

/** "namespace/name", as in the work queue. */
export function keyOf({ metadata }: KubernetesObject): string {
  return `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
}

/** The key of the Foo that controls this object; undefined if none does. */
export function keyOfOwner({ metadata }: KubernetesObject): string | undefined {
  const owner = metadata?.ownerReferences?.find(({ controller }) => controller === true);
  const isFoo = owner?.kind === FOO.kind && owner.apiVersion.startsWith(`${FOO.group}/`);
  return isFoo ? `${metadata?.namespace ?? ""}/${owner.name}` : undefined;
}

/** The desired ConfigMap, based on the existing one; the same object if nothing differs. */
export function wantedConfigMap(foo: Foo, existing: V1ConfigMap | undefined): V1ConfigMap {
  const message = foo.spec?.message ?? "";
  const owner: V1OwnerReference = {
    apiVersion: `${FOO.group}/${FOO.version}`,
    kind: FOO.kind,
    name: foo.metadata?.name ?? "",
    uid: foo.metadata?.uid ?? "",
    controller: true,
    blockOwnerDeletion: true,
  };
  const others = existing?.metadata?.ownerReferences?.filter(({ uid }) => uid !== owner.uid) ?? [];
  const isOwned = existing?.metadata?.ownerReferences?.some(({ uid, controller }) => uid === owner.uid && controller === true);
  if (existing !== undefined && isOwned && existing.data?.message === message) return existing;
  const names = { namespace: foo.metadata?.namespace ?? "", name: `${foo.metadata?.name ?? ""}-data` };
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    ...existing,
    metadata: { ...names, ...existing?.metadata, ownerReferences: [...others, owner] },
    data: { ...existing?.data, message },
  };
}

/** The status after this pod has reconciled the Foo; undefined if nothing differs. */
export function nextStatus({ metadata, status = {} }: Foo, podName: string): FooStatus | undefined {
  const generation = metadata?.generation ?? 0;
  if (status.observedGeneration === generation && status.reconciledBy === podName) return undefined;
  return { reconciledBy: podName, count: (status.count ?? 0) + 1, observedGeneration: generation };
}
