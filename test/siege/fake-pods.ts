// Pods without processes, whose tokens honest clients and attackers use: further pods of the operator, and
// those of a tenant with `edit` in one namespace, which has an app and pods that say they carry a sidecar (H3
// of the findings).
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { PODS } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { podObject, podToken } from "../support/mesh/cluster.ts";
import type { FakePod } from "./attack.ts";
import { HOME, TENANT } from "./cluster-objects.ts";

/** A call has 10 s and comes each second, and a second registration of a pod would end the first. */
const HONEST_PODS = 12;
/** Six tables of 85 MB exceed the manager's heap. */
const TENANT_PODS = 8;

export function createHonestPods(client: KubeClient): Promise<FakePod[]> {
  return createPods(client, HOME, "foo-operator", HONEST_PODS);
}

export async function createTenant(client: KubeClient): Promise<FakePod[]> {
  const spec = {
    selector: { matchLabels: { component: "tenant" } },
    configuration: { controller: { leaderElectionName: "tenant" } },
  };
  await client.create(VIRTUAL_APPS, { metadata: { namespace: TENANT, name: "tenant" }, spec } as never);
  return createPods(client, TENANT, "tenant", TENANT_PODS);
}

function createPods(client: KubeClient, namespace: string, app: string, count: number): Promise<FakePod[]> {
  const create = async (index: number) => {
    const name = `fake-${index}`;
    // With some environment podObject adds the container of a sidecar.
    const { metadata } = await client.create(PODS, podObject(namespace, app, name, {}, [{ name: "FAKE", value: "1" }]));
    const uid = metadata.uid ?? "";
    return { namespace, name, uid, token: await podToken(client, namespace, name, uid, ["ctrlmesh"]) };
  };
  return Promise.all(Array.from({ length: count }, (_, index) => create(index)));
}
