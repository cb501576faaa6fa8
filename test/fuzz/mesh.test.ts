// The manager and its proxies as a whole, in any order of events: the real reconciler, registry, planning, wire codec,
// admission, enforcer and intake, of which only gRPC and the disk are replaced.
import fc from "fast-check";
import { expect, it } from "vitest";
import { createMeshWorld, type MeshWorld, NAMESPACES, RESOURCES } from "./mesh-model.ts";
import { labelsFor, ownerOf, usedSubsets } from "./mesh-objects.ts";
import { begin, calmDown, perform, script, type Wished, wishedAtFirst } from "./mesh-script.ts";

const BUDGET_MS = 20_000;
const MIN_STEPS = 20_000;

it("never lets two subsets hold the same resource in a namespace, and converges once it is quiet", {
  timeout: 3 * BUDGET_MS,
}, async () => {
  let count = 0;
  const property = fc.asyncProperty(script, async (run) => {
    const world = createMeshWorld(run.namespaces);
    const wished = wishedAtFirst(run);
    await begin(world, run);
    for (const [index, step] of run.steps.entries()) {
      await perform(world, step, run, wished);
      world.expectOneOwner(`step ${index}, ${JSON.stringify(step)}`);
      count++;
    }
    await calmDown(world, wished);
    expectConverged(world, wished);
  });
  await fc.assert(property, {
    plugins: [fc.unbiased()],
    numRuns: 1_000_000,
    interruptAfterTimeLimit: BUDGET_MS,
    markInterruptAsFailure: false,
  });
  expect(count).toBeGreaterThanOrEqual(MIN_STEPS);
});

// Judged by the wish alone: nothing of the manager's own planning says what is right.
function expectConverged(world: MeshWorld, { rules, labels }: Wished): void {
  const used = new Set(usedSubsets(rules));
  const says: string[] = [];
  for (const proxy of world.proxies.values()) {
    if (!proxy.isConnected) says.push(`${proxy.name} is not connected: ${proxy.refusal}`);
    const label = labels.get(proxy.name)?.subset ?? "";
    const subset = used.has(label) ? label : "";
    for (const namespace of NAMESPACES.filter(world.hasNamespace)) {
      for (const [resource, labels] of RESOURCES.flatMap((name) => labelsFor(name).map((row) => [name, row] as const))) {
        const owner = ownerOf(rules, namespace, resource, labels);
        const expected = owner === "*" ? [[subset, "shared"]] : owner === subset ? [[subset, "alone"]] : [];
        const held = [...proxy.holds(namespace, resource, labels)];
        if (JSON.stringify(held) !== JSON.stringify(expected))
          says.push(
            `${proxy.name} holds ${resource} ${JSON.stringify(labels)} in ${namespace} as ${JSON.stringify(held)}, not as ${JSON.stringify(expected)} (${proxy.nacks.at(-1) ?? "no NACK"})`,
          );
      }
    }
  }
  expect(says).toEqual([]);
  const { proxies, namespaces, conditions } = world.status() ?? {};
  expect(proxies).toEqual({ total: world.proxies.size, connected: world.proxies.size, synced: world.proxies.size });
  expect(namespaces?.moving).toBe(0);
  expect(["InSync", "SubsetWithoutPods"]).toContain(conditions?.find(({ type }) => type === "Ready")?.reason);
}
