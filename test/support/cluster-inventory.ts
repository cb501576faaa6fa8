// SIG Multicluster's inventory on a control plane: the real CRDs, from Go's module cache, and ClusterProfiles that kubectl makes.
import { join } from "node:path";
import { stringify } from "yaml";
import { goModuleFolder } from "./go-build.ts";
import type { Kube } from "./kube.ts";
import { kubectl } from "./kubectl.ts";

const CRDS = ["clusterprofiles", "placementdecisions"] as const;

async function crdFiles(): Promise<string[]> {
  const folder = await goModuleFolder("test/operators/go-multicluster", "sigs.k8s.io/cluster-inventory-api");
  return CRDS.map((plural) => join(folder, "config/crd/bases", `multicluster.x-k8s.io_${plural}.yaml`));
}

export async function installInventory({ kubeconfig }: Kube): Promise<void> {
  for (const file of await crdFiles()) await kubectl(kubeconfig, ["apply", "-f", file]);
  const names = CRDS.map((plural) => `crd/${plural}.multicluster.x-k8s.io`);
  await kubectl(kubeconfig, ["wait", ...names, "--for=condition=Established", "--timeout=60s"]);
}

export async function removeInventory({ kubeconfig }: Kube): Promise<void> {
  for (const file of await crdFiles()) await kubectl(kubeconfig, ["delete", "-f", file, "--timeout=60s"]);
}

export interface ProfileContent {
  readonly namespace: string;
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly servers?: readonly string[];
  /** In place of `servers`. */
  readonly accessProviders?: readonly { readonly name: string; readonly cluster: object }[];
  readonly clusterID?: string;
}

/** Applies the profile, and then its status, as a cluster manager does. */
export async function applyProfile({ kubeconfig }: Kube, content: ProfileContent): Promise<void> {
  const { namespace, name, labels = {}, servers = [], clusterID } = content;
  const profile = {
    apiVersion: "multicluster.x-k8s.io/v1alpha1",
    kind: "ClusterProfile",
    metadata: { namespace, name, labels },
    spec: { clusterManager: { name: "test" } },
  };
  await kubectl(kubeconfig, ["apply", "-f", "-"], stringify(profile));
  const plain = servers.map((server, at) => ({ name: `provider-${at}`, cluster: { server } }));
  const { accessProviders = plain } = content;
  const properties = clusterID === undefined ? [] : [{ name: "clusterset.k8s.io/cluster-id", value: clusterID }];
  const patch = JSON.stringify({ status: { accessProviders, properties } });
  await kubectl(kubeconfig, [
    "patch",
    "clusterprofile",
    name,
    "-n",
    namespace,
    "--subresource=status",
    "--type=merge",
    "-p",
    patch,
  ]);
}
