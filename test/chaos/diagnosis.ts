// Collects information about the cause if a chaos run does not converge. Called by run-chaos.ts.

import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { LEASES } from "../../src/kube/client/resources.ts";
import { APP, type ChaosWorld } from "./world.ts";

const LIMITS = { timeoutMs: 5_000 };
const LAST_LINES = 12;

/**
 * The holders of the locks, the status of the VirtualApp, and the last lines of each process. @throws Error if the API server
 * does not respond
 */
export async function diagnose({ mesh, pods }: ChaosWorld): Promise<readonly string[]> {
  const [leases, app] = await Promise.all([mesh.client.list(LEASES, LIMITS), mesh.client.get(VIRTUAL_APPS, APP, LIMITS)]);
  const held = leases.items
    .filter(({ metadata }) => [APP.namespace, "ctrlmesh-system"].includes(metadata.namespace ?? ""))
    .map(({ metadata, spec }) => `lock ${metadata.name}: ${spec?.holderIdentity}, renewed ${spec?.renewTime}`);
  const last = (name: string, output = "") => `${name}printed last:\n${output.split("\n").slice(-LAST_LINES).join("\n")}`;
  const managers = mesh.managers.map(({ child }, index) => last(`manager ${index}`, child.output()));
  const processes = [...pods].flatMap(([name, pod]) => [
    last(`${name}'s proxy`, pod.processes.proxy?.child.output()),
    last(`${name}'s operator`, pod.processes.operator?.child.output()),
  ]);
  return [...held, JSON.stringify(app.status), ...managers, ...processes];
}
