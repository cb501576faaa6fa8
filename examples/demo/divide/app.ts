// Reads the demo's VirtualApp from its YAML file, with the names that follow from it.
import { lockNameOf, type VirtualApp, validateVirtualApp } from "../../../src/api/virtual-app.ts";
import { MeshError } from "../../../src/base/errors.ts";
import type { KubeObject } from "../../../src/kube/types.ts";
import { compileNow } from "../../../src/manager/apps/compile/compile-now.ts";
import { routeOf } from "../../../src/manager/virtual-app/route-rules.ts";
import { subsetOfPod } from "../../../src/manager/virtual-app/virtual-app-source.ts";
import { ownersOf } from "../../../src/mesh/ownership/owners.ts";
import type { Setting } from "../act.ts";
import { FOOS, readManifests } from "../manifests.ts";

export const APP_FILE = "examples/demo/divide/virtualapp.yaml";
const NAMESPACES_FILE = "examples/demo/divide/namespaces.yaml";

export interface DemoApp {
  readonly setting: Setting;
  /** The subset of a pod with these labels. */
  subsetOf(labels: Readonly<Record<string, string>>): string;
  /** The owning subset of a namespace, by the rules. */
  ownersOf(namespaces: readonly KubeObject[]): (namespace: string) => string;
}

export function readApp(file = APP_FILE): DemoApp {
  const checked = validateVirtualApp(readManifests(file)[0]?.object);
  if (!checked.ok) throw new MeshError("BAD_APP", `reading ${file}: not a valid VirtualApp`);
  const { metadata, spec }: VirtualApp = checked.value;
  return {
    setting: {
      manifests: [NAMESPACES_FILE, file],
      namespace: metadata?.namespace ?? "",
      appName: metadata?.name ?? "",
      lockName: lockNameOf(spec),
      hasWebhook: spec.configuration?.webhook !== undefined,
    },
    subsetOf: (labels) => subsetOfPod(spec, labels),
    ownersOf(namespaces) {
      const facts = namespaces.map(({ metadata: { name = "", labels = {} } }) => ({ name, labels }));
      const owners = ownersOf(compileNow(routeOf(spec), facts), FOOS.group, FOOS.resource);
      return (namespace) => {
        const owner = owners.ownerOf(namespace);
        return owner.kind === "subset" ? owner.subset : owner.kind;
      };
    },
  };
}
