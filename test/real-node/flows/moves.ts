// Moves of a namespace without restarts, to the default subset and to the canary again.
import { expect } from "vitest";
import { flow, type World } from "../world.ts";
import { converged, HOME, OPERATOR_SELECTOR } from "./operator.ts";

export function moves(world: () => World): void {
  flow("move a namespace back and forth (onLoss InPlace)", world, async (own) => {
    const pods = await own.podNames(HOME, OPERATOR_SELECTOR);
    await onLoss(own, "InPlace");
    await moveInPlace(own, "");
    await moveInPlace(own, "v2");
    expect(await own.podNames(HOME, OPERATOR_SELECTOR)).toEqual(pods);
    await onLoss(own, "Restart");
  });
}

/** Sets what happens to pods that lose a namespace. */
export async function onLoss(world: World, value: "InPlace" | "Restart"): Promise<void> {
  const patch = JSON.stringify({ spec: { route: { onLoss: value } } });
  await world.run("patch", "virtualapp", "foo-operator", "-n", HOME, "--type=merge", "-p", patch);
  await converged(world);
}

/** Moves team-b, and waits until every proxy enforces it. */
export async function moveInPlace(world: World, to: "" | "v2"): Promise<void> {
  world.owners["team-b"]?.push({ sinceMs: Date.now(), subset: to });
  await world.run("label", "namespace", "team-b", to === "v2" ? "ns-type=canary-1" : "ns-type-");
  const count = '{.status.subsets[?(@.name=="v2")].namespaces}';
  const app = ["wait", "virtualapp/foo-operator", "-n", HOME];
  await world.run(...app, `--for=jsonpath=${count}=${to === "v2" ? 1 : 0}`, "--timeout=60s");
  await converged(world);
}
