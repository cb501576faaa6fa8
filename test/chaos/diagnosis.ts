// Collects information about the cause if a chaos run does not converge.

import { SHARDING_CONFIGS, VIRTUAL_APPS } from "../../src/api/resources.ts";
import { LEASES } from "../../src/kube/client/resources.ts";
import { APP } from "./desired-owners.ts";
import { FAMILY } from "./family.ts";
import type { ChaosWorld } from "./world.ts";

const LIMITS = { timeoutMs: 5_000 };
const LAST_LINES = 12;

/**
 * The holders of the locks, the statuses of the apps, and the last lines of each process. @throws Error if
 * the API server does not respond
 */
export async function diagnose(world: ChaosWorld): Promise<readonly string[]> {
  const { client, managers: replicas } = world.mesh;
  const [leases, app, family] = await Promise.all([
    client.list(LEASES, LIMITS),
    client.get(VIRTUAL_APPS, APP, LIMITS),
    client.get(SHARDING_CONFIGS, FAMILY, LIMITS),
  ]);
  const held = leases.items
    .filter(({ metadata }) => [APP.namespace, "ctrlmesh-system"].includes(metadata.namespace ?? ""))
    .map(({ metadata, spec }) => `lock ${metadata.name}: ${spec?.holderIdentity}, renewed ${spec?.renewTime}`);
  const last = (name: string, output = "") => `${name}printed last:\n${output.split("\n").slice(-LAST_LINES).join("\n")}`;
  const managers = replicas.map(({ child }, index) => last(`manager ${index}`, child.output()));
  const processes = world
    .allPods()
    .flatMap(({ name, proxy, operator }) => [
      last(`${name}'s proxy`, proxy?.output()),
      last(`${name}'s operator`, operator?.output()),
    ]);
  return [...held, JSON.stringify(app.status), JSON.stringify(family.status), ...managers, ...processes];
}
