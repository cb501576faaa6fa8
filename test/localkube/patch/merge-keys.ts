// The lists of the built-in kinds that are maps by a key, or sets, for strategic merge and server-side apply. The API server
// reads this from Go struct tags; a table by field name suffices for the kinds here. Custom resources have it in their schema.
import type { Schema } from "../model/schema.ts";

export type ListKind =
  | { readonly kind: "atomic" }
  | { readonly kind: "set" }
  | { readonly kind: "map"; readonly keys: readonly string[]; readonly patchKey: string };

const ATOMIC: ListKind = { kind: "atomic" };
const SET: ListKind = { kind: "set" };
const byKey = (...keys: [string, ...string[]]): ListKind => ({ kind: "map", keys, patchKey: keys[0] });

/** By the end of the path of field names, without list items. The longest suffix counts. */
const BUILT_IN: Readonly<Record<string, ListKind>> = {
  containers: byKey("name"),
  initContainers: byKey("name"),
  ephemeralContainers: byKey("name"),
  env: byKey("name"),
  volumes: byKey("name"),
  imagePullSecrets: byKey("name"),
  secrets: byKey("name"),
  volumeMounts: byKey("mountPath"),
  volumeDevices: byKey("devicePath"),
  hostAliases: byKey("ip"),
  topologySpreadConstraints: byKey("topologyKey", "whenUnsatisfiable"),
  conditions: byKey("type"),
  ownerReferences: byKey("uid"),
  "containers.ports": byKey("containerPort", "protocol"),
  "initContainers.ports": byKey("containerPort", "protocol"),
  "spec.ports": byKey("port", "protocol"),
  podIPs: byKey("ip"),
  addresses: byKey("type"),
  finalizers: SET,
};

/** How a list of a built-in kind merges. `path` holds field names only. */
export function builtInListKind(path: readonly string[]): ListKind {
  return BUILT_IN[path.slice(-2).join(".")] ?? BUILT_IN[path.at(-1) ?? ""] ?? ATOMIC;
}

/** How a list of a custom kind merges, from its schema. */
export function schemaListKind(schema: Schema | undefined): ListKind {
  const keys = schema?.["x-kubernetes-list-map-keys"] ?? [];
  if (schema?.["x-kubernetes-list-type"] === "set") return SET;
  if (schema?.["x-kubernetes-list-type"] === "map" && keys[0] !== undefined) return { kind: "map", keys, patchKey: keys[0] };
  return ATOMIC;
}
