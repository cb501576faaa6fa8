// The objects that every new cluster has: the system namespaces and the service of the API server.
import type { Backend } from "./backend.ts";
import { apiVersionOf, type ResourceType } from "./model/registry.ts";
import { createObject } from "./write.ts";

const NAMESPACES = ["default", "kube-node-lease", "kube-public", "kube-system"];

/** Fills an empty store. Does nothing if the store was filled before. */
export function seed(backend: Backend): void {
  if (backend.store.entries("/namespaces").length > 0) return;
  for (const name of NAMESPACES) create(backend, "namespaces", "", { metadata: { name } });
  const spec = { clusterIP: "10.96.0.1", ports: [{ name: "https", port: 443, protocol: "TCP", targetPort: 6443 }] };
  create(backend, "services", "default", { metadata: { name: "kubernetes" }, spec });
  // No client has seen these versions. As in a real cluster, a request for one of them is too old.
  backend.store.compact();
}

function create(backend: Backend, resource: string, namespace: string, body: object): void {
  const type = backend.registry.find("", "v1", resource) as ResourceType;
  const request = { type, namespace, subresource: "", dryRun: false, fieldManager: "localkube", strict: false };
  createObject(backend, request, { kind: type.kind, apiVersion: apiVersionOf(type), ...body });
}
