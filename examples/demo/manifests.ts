// Reads the YAML files that the demo applies, with the collection of each object.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";
import { CIRCUIT_BREAKERS, SHARDING_CONFIGS, VIRTUAL_APPS } from "../../src/api/resources.ts";
import { MeshError } from "../../src/base/errors.ts";
import { apiVersionOf, collectionPath, type Resource } from "../../src/kube/client/resource.ts";
import { CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, STATEFUL_SETS } from "../../src/kube/client/resources.ts";
import type { KubeObject } from "../../src/kube/types.ts";

/** The root of the repository. */
export const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export interface Foo extends KubeObject {
  readonly spec?: { readonly message?: string };
  readonly status?: { readonly reconciledBy?: string; readonly count?: number; readonly observedGeneration?: number };
}

export const FOOS: Resource<Foo> = { group: "demo.ctrlmesh.io", version: "v1", resource: "foos", kind: "Foo", namespaced: true };

export const SERVICE_ACCOUNTS: Resource = {
  group: "",
  version: "v1",
  resource: "serviceaccounts",
  kind: "ServiceAccount",
  namespaced: true,
};

const KINDS: readonly Resource[] = [
  CUSTOM_RESOURCE_DEFINITIONS,
  NAMESPACES,
  STATEFUL_SETS,
  VIRTUAL_APPS,
  SHARDING_CONFIGS,
  CIRCUIT_BREAKERS,
];

export interface Manifest {
  readonly object: KubeObject;
  /** The collection to create it in. */
  readonly path: string;
}

/** The objects of a file, or of all YAML files of a folder in the order of their names. `path` is relative to the repository. */
export function readManifests(path: string): Manifest[] {
  const full = join(ROOT, path);
  if (statSync(full).isDirectory()) {
    const names = readdirSync(full).filter((name) => /\.ya?ml$/.test(name));
    return names.sort().flatMap((name) => readManifests(join(path, name)));
  }
  return parseAllDocuments(readFileSync(full, "utf8")).map((document) => {
    const object = document.toJS() as KubeObject;
    const kind = KINDS.find((known) => known.kind === object.kind && apiVersionOf(known) === object.apiVersion);
    if (kind === undefined)
      throw new MeshError("UNKNOWN_KIND", `reading ${path}: ${object.apiVersion} ${object.kind} is not a known kind`);
    return { object, path: collectionPath(kind, object.metadata.namespace) };
  });
}
