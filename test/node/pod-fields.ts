// The downward API: the values of a pod's fields and of its containers' resources, for env and volumes. Pure.
import type { Container, FieldRef, NodePod, ResourceFieldRef } from "./pod-types.ts";

/** The facts about a pod that are not in its object. */
export interface PodAddresses {
  readonly podIP: string;
  readonly hostIP: string;
  readonly nodeName: string;
}

/** @throws Error for a field that is not supported */
export function fieldValue(pod: NodePod, { fieldPath }: FieldRef, { podIP, hostIP, nodeName }: PodAddresses): string {
  const { metadata, spec } = pod;
  const keyed = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(fieldPath);
  if (keyed !== null) return metadata[keyed[1] as "labels" | "annotations"]?.[keyed[2] ?? ""] ?? "";
  const values: Readonly<Record<string, () => string>> = {
    "metadata.name": () => metadata.name ?? "",
    "metadata.namespace": () => metadata.namespace ?? "",
    "metadata.uid": () => metadata.uid ?? "",
    "metadata.labels": () => lines(metadata.labels),
    "metadata.annotations": () => lines(metadata.annotations),
    "spec.nodeName": () => nodeName,
    "spec.serviceAccountName": () => spec.serviceAccountName ?? "default",
    "status.podIP": () => podIP,
    "status.podIPs": () => podIP,
    "status.hostIP": () => hostIP,
    "status.hostIPs": () => hostIP,
  };
  const value = values[fieldPath];
  if (value === undefined) throw new Error(`field ${fieldPath} is not supported`);
  return value();
}

const NODE_DEFAULTS: Readonly<Record<string, string>> = { cpu: "64", memory: "64Gi", "ephemeral-storage": "64Gi" };
const UNITS: Readonly<Record<string, number>> = {
  "": 1,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

/** A limit or request in units of the divisor, rounded up; without a limit the node's capacity. */
export function resourceValue(pod: NodePod, container: Container | undefined, ref: ResourceFieldRef): string {
  const all = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
  const of = ref.containerName === undefined ? container : all.find(({ name }) => name === ref.containerName);
  const [kind = "", resource = ""] = ref.resource.split(".");
  const quantity =
    of?.resources?.[kind as "limits" | "requests"]?.[resource] ?? (kind === "limits" ? NODE_DEFAULTS[resource] : "0");
  const divisor = ref.divisor === undefined || ref.divisor === "0" ? "1" : ref.divisor;
  return String(Math.ceil(parseQuantity(quantity ?? "0") / parseQuantity(divisor)));
}

/** A resource quantity as a number. @throws Error if the text is not one */
export function parseQuantity(text: string): number {
  const [, digits, unit = ""] = /^([0-9.]+)([A-Za-z]*)$/.exec(text) ?? [];
  const factor = UNITS[unit];
  if (digits === undefined || factor === undefined) throw new Error(`quantity ${text} is not supported`);
  return Number(digits) * factor;
}

function lines(map: Readonly<Record<string, string>> = {}): string {
  return Object.entries(map)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .join("\n");
}
