// The first act: one operator in two subsets, a namespace that moves between them, and a write that is refused.
import type { Act } from "../act.ts";
import { readApp } from "./app.ts";
import { lookAt } from "./facts.ts";
import { addNamespace, divide, moveNamespace, refuseWrite, sumUp } from "./steps.ts";
import { type Facts, factLines } from "./view.ts";

const VERSIONS = { "foo-operator-0": "v1", "foo-operator-1": "v1", "foo-operator-v2-0": "v2" };

export function readDivideAct(): Act<Facts> {
  const app = readApp();
  const pods = Object.entries(VERSIONS).map(([name, version]) => {
    const labels = { component: app.setting.appName, version };
    return { name, labels, subset: app.subsetOf(labels) };
  });
  return {
    setting: app.setting,
    opening: `Starting an API server (localkube), ctrlmesh-manager, and ${pods.length} pods of an ordinary operator`,
    roles:
      "No cluster and no containers: the demo plays the kubelet. It runs each pod as two processes, the operator and its proxy, and reports it Ready.",
    pods,
    introduce: (started) =>
      [...Map.groupBy(started, ({ subset }) => subset)].map(
        ([subset, own]) =>
          `${subset === "" ? "the default subset" : `subset ${subset}`}: ${own.map(({ name }) => name).join(", ")}`,
      ),
    look: (world) => lookAt(world, app),
    draw: factLines,
    steps: [divide, addNamespace, moveNamespace, refuseWrite],
    sumUp,
    resource: "virtualapps",
    move: "label namespace team-a ns-type=canary-1",
    next: "The second act, a StatefulSet that shards itself: npm run demo -- sharding",
  };
}
