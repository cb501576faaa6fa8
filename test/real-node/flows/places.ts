// Where the pods of the operator in foo-system run, and how the flows bring them there.
import { expect } from "vitest";
import { eventually } from "../../support/eventually.ts";
import type { World } from "../world.ts";
import { HOME, leaderOf, OPERATOR_PODS, OPERATOR_SELECTOR } from "./operator.ts";

const DEPLOYMENTS = ["foo", "foo-canary"];

interface PlacedPod {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly nodeName?: string };
}

/** The operator's pods on a node, those that end included. */
export async function podsOn(world: World, node: string): Promise<string[]> {
  const { items } = await world.get<{ items: PlacedPod[] }>("pods", "-n", HOME, "-l", OPERATOR_SELECTOR);
  return items.flatMap(({ metadata, spec }) => (spec.nodeName === node ? [metadata.name] : []));
}

/** Starts all pods of the operator again, on this node. */
export async function startAllOn(world: World, node: string, restart: () => Promise<unknown>): Promise<void> {
  await onlyOn(world, node, async () => {
    await restart();
    await rolledOut(world);
  });
  await eventually(async () => expect(await podsOn(world, node)).toHaveLength(OPERATOR_PODS), 60_000);
}

/** Moves the leader of the default subset to the second node; that subset's other pod stays on the first. All pods must be on the first node. */
export async function leadOnSecond(world: World, ...more: readonly string[]): Promise<string> {
  const [first, second] = world.nodes;
  const leader = await leaderOf(world);
  const follower = (await world.podNames(HOME, "version=v1")).find((name) => name !== leader) ?? "";
  await onlyOn(world, second.name, async () => {
    await world.run("delete", "pod", follower, ...more, "-n", HOME);
    await rolledOut(world);
  });
  // The leader's replacement starts only when the other pod leads, since it could lead first.
  const next = await onlyOn(world, undefined, async () => {
    await world.run("delete", "pod", leader, "-n", HOME);
    return eventually(async () => {
      const found = await leaderOf(world);
      expect(await podsOn(world, second.name)).toContain(found);
      return found;
    }, 30_000);
  });
  await onlyOn(world, first.name, () => rolledOut(world));
  return next;
}

export async function rolledOut(world: World): Promise<void> {
  for (const name of DEPLOYMENTS) await world.rolledOut(`deployment/${name}`, HOME);
}

/** Runs `work` while all other nodes are cordoned; without a node, all of them. */
async function onlyOn<T>(world: World, node: string | undefined, work: () => Promise<T>): Promise<T> {
  const others = world.nodes.map(({ name }) => name).filter((name) => name !== node);
  if (node !== undefined) await world.run("uncordon", node);
  await world.run("cordon", ...others);
  const result = await work();
  await world.run("uncordon", ...others);
  return result;
}
