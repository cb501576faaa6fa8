// The objects of the cluster under siege, in the order in which they need each other.
import { readManifests } from "../../examples/demo/manifests.ts";
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { eventually } from "../support/eventually.ts";
import { SERVICE_ACCOUNTS } from "../support/mesh/cluster.ts";

/** The namespaces of the operator and of the tenant. */
export const HOME = "foo-system";
export const TENANT = "tenant";
/** Moves between the subsets while the siege goes on. */
export const MOVING = "moving";
/** An object in each of the namespaces that the operator's subsets own. */
export const OBJECT = "siege";
const OWNED = ["team-a", "canary-a", MOVING];

/** @param empty namespaces without anything in them */
export async function fillCluster(client: KubeClient, caPem: string, empty: number): Promise<void> {
  for (const { path, object } of [...readManifests("deploy/crds"), ...readManifests("test/operators/go-foo/crd.yaml")]) {
    await client.request({ method: "POST", path, body: object });
  }
  for (const kind of ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]) {
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, webhookKind(kind) as never);
  }
  const empties = Array.from({ length: empty }, (_, index) => `empty-${index}`);
  for (const name of [HOME, TENANT, "ctrlmesh-system", ...OWNED, ...empties])
    await client.create(NAMESPACES, { metadata: { name } });
  for (const namespace of OWNED) {
    await client.create(CONFIG_MAPS, { metadata: { namespace, name: OBJECT }, data: { turn: "0" } });
  }
  for (const namespace of [HOME, TENANT]) {
    // kube-controller-manager writes the ConfigMap into each namespace.
    await client.create(CONFIG_MAPS, { metadata: { namespace, name: "kube-root-ca.crt" }, data: { "ca.crt": caPem } });
    await client.create(SERVICE_ACCOUNTS, { metadata: { namespace, name: "foo-operator" } });
  }
  const [app] = readManifests("examples/demo/webhooks/virtualapp.yaml");
  await eventually(() => client.create(VIRTUAL_APPS, app?.object as never));
}

/**
 * localkube calls no webhooks and does not have these kinds. The manager keeps its configurations in them.
 */
function webhookKind(kind: string): object {
  const group = "admissionregistration.k8s.io";
  const [singular, plural] = [kind.toLowerCase(), `${kind.toLowerCase()}s`];
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  return {
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: "Cluster",
      names: { kind, singular, plural },
      versions: [{ name: "v1", served: true, storage: true, schema }],
    },
  };
}
