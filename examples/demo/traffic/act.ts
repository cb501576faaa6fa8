// The third act: an operator runs wild, a breaker stops it, the status shows it, and a person closes the breaker.
import { CIRCUIT_BREAKERS } from "../../../src/api/resources.ts";
import type { Act } from "../act.ts";
import { readApp } from "../divide/app.ts";
import type { World } from "../world.ts";
import { guard, preciousMaps, recover, runWild, sumUp } from "./steps.ts";
import { type Facts, factLines } from "./view.ts";

export function readTrafficAct(): Act<Facts> {
  const { setting, subsetOf } = readApp();
  const labels = { component: setting.appName, version: "v1" };
  return {
    setting,
    opening: "Starting an API server (localkube), ctrlmesh-manager, and a pod of an ordinary operator",
    roles:
      "No cluster and no containers: the demo plays the kubelet. It runs the pod as two processes, the operator and its proxy.",
    pods: [{ name: "foo-operator-0", labels, subset: subsetOf(labels) }],
    introduce: (pods) => [`The operator: ${pods.map(({ name }) => name).join(", ")}`],
    look: lookAt,
    draw: factLines,
    steps: [guard, runWild, recover],
    sumUp,
    resource: "circuitbreakers",
    next: "The fourth act, whose webhook answers: npm run demo -- webhooks",
  };
}

async function lookAt(world: World): Promise<Facts> {
  const { items } = await world.client.list(CIRCUIT_BREAKERS, { namespace: world.setting.namespace });
  const [breaker] = items;
  const condition = (type: string) => breaker?.status?.conditions?.find((each) => each.type === type);
  const left = (await preciousMaps(world)).length;
  if (breaker === undefined) return { breaker: undefined, left };
  return {
    left,
    breaker: {
      name: breaker.metadata.name ?? "",
      synced: condition("Synced")?.status ?? "Unknown",
      open: condition("Open")?.status ?? "Unknown",
      message: condition("Open")?.message ?? "",
    },
  };
}
