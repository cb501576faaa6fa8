// The manager's facts for an injection, for tests, and an RFC 6902 patch function in place of the API server's.
import type { JsonPatchOperation } from "../../src/kube/client/types.ts";
import type { InjectionSettings } from "../../src/manager/injection/injection.ts";

/** A cluster of one address family with native sidecars. */
export const SETTINGS: InjectionSettings = {
  proxyImage: "ctrlmesh/proxy:0.1.0",
  managerAddress: "ctrlmesh-manager.ctrlmesh-system.svc:5447",
  managerIPs: ["10.96.0.47"],
  nativeSidecars: true,
  kubernetesService: { ips: ["10.96.0.1"], port: 443 },
};

type Fields = Record<string, unknown>;

/** The object with the patch applied. As in the RFC, a missing parent is an error. */
export function applyPatch(object: unknown, patch: readonly JsonPatchOperation[]): unknown {
  const copy: unknown = structuredClone(object);
  for (const operation of patch) {
    const keys = operation.path
      .split("/")
      .slice(1)
      .map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
    const last = keys.pop() ?? "";
    const parent = keys.reduce((inner, key) => (inner as Fields)[key], copy);
    if (typeof parent !== "object" || parent === null) throw new Error(`nothing at the parent of ${operation.path}`);
    if (operation.op === "add") (parent as Fields)[last] = structuredClone(operation.value);
    else if (!Object.hasOwn(parent, last)) throw new Error(`nothing at ${operation.path}`);
    else delete (parent as Fields)[last];
  }
  return copy;
}
