// The manager and its proxies as a whole, in any order of events: the real reconciler, registry, streams, planning, restarts, wire
// codec, admission, enforcer and route handler, of which only gRPC, the disk and the clock are replaced.
//
// Left out, since nobody can keep them from overlapping (docs/design.md, limitations): a pod without a proxy that comes when there is an
// app already, or when a proxy holds something of one (what is done about it all the same: mesh-bare.test.ts); a namespace that is made
// anew under its name while a proxy is cut off; and a pod that has never been served and is told its first routes by an older manager
// more than 10 s after another one leads (for 30 s that one believes of no pod that it was never served: pod-history.ts).
import fc from "fast-check";
import { expect, it } from "vitest";
import { FUZZ_SEED, shareOf } from "../support/fuzz.ts";
import { PLACES } from "./mesh-checks.ts";
import { SHOP } from "./mesh-model.ts";
import { ownerOf, usedSubsets } from "./mesh-objects.ts";
import { begin, calmDown, perform, type Run, settleFully } from "./mesh-run.ts";
import { type Script, script } from "./mesh-script.ts";

/** Of all fuzz tests of the mesh by far the most; the rest of the 100,000 are of handover.test.ts. */
const STEPS = Number(process.env.MESH_STEPS ?? shareOf(100_000, 1 / 8));
/** A busy machine may take this long and end with fewer steps. */
const MOST_MS = shareOf(90_000);
const FEWEST_STEPS = shareOf(5_000, 1 / 8);

it(`never lets two subsets write the same, and converges once it is quiet (SEED=${FUZZ_SEED})`, {
  timeout: 2 * MOST_MS,
}, async () => {
  let count = 0;
  let isShrinking = false;
  const until = performance.now() + MOST_MS;
  const property = fc.asyncProperty(script, async (made) => {
    if (!isShrinking && (count >= STEPS || performance.now() > until)) return;
    try {
      await take(made, (steps) => (count += steps));
    } catch (error) {
      isShrinking = true;
      throw error;
    }
  });
  const details = await fc.check(property, { seed: FUZZ_SEED, numRuns: STEPS / 20, interruptAfterTimeLimit: 2 * MOST_MS });
  const cpuSeconds = Math.round(process.cpuUsage().user / 1e6);
  console.log(`mesh: ${count} steps, ${cpuSeconds} s of processor time, SEED=${FUZZ_SEED}`);
  if (details.failed) throw new Error(await fc.asyncDefaultReportMessage(details), { cause: details.errorInstance });
  expect(count).toBeGreaterThanOrEqual(Math.min(STEPS, FEWEST_STEPS));
});

/**
 * A script from its beginning to its end.
 * @param taken called with the number of steps: what happens between two looks at who may write what, but in times of quiet
 */
async function take(made: Script, taken: (steps: number) => void): Promise<void> {
  const run = await begin(made);
  for (const [index, step] of made.steps.entries()) {
    const looks = run.world.looks;
    await perform(run, step);
    run.world.expectOneOwner(`step ${index}, ${JSON.stringify(step)}`);
    run.promises.expect();
    taken(step.kind === "pause" ? 1 : run.world.looks - looks);
  }
  await calmDown(run);
  expectConverged(run);
  if (made.endsDeleted) await expectDeleted(run);
}

// Judged by the wish alone: nothing of the manager's own planning says what is right.
function expectConverged({ world, desired: { rules } }: Run): void {
  const used = new Set(usedSubsets(rules));
  const says: string[] = [];
  for (const proxy of world.proxies.values()) {
    if (proxy.manager !== world.leader) says.push(`${proxy.name} is not connected`);
    const label = world.cluster.wanted.get(proxy.name)?.subset ?? "";
    const subset = used.has(label) ? label : "";
    if (proxy.current?.table.retained !== undefined) says.push(`${proxy.name} shows something still`);
    for (const { namespace, resource, labels: row, text } of PLACES.filter((place) => world.hasNamespace(place.namespace))) {
      const owner = ownerOf(rules, world.cluster.teamOf(namespace), resource, row);
      const expected = owner === "*" ? [[subset, "shared"]] : owner === subset ? [[subset, "alone"]] : [];
      const held = [...proxy.holds(namespace, resource, row)];
      if (JSON.stringify(held) === JSON.stringify(expected)) continue;
      const nack = proxy.nacks.at(-1) ?? "no NACK";
      says.push(`${proxy.name} holds ${text} as ${JSON.stringify(held)}, not as ${JSON.stringify(expected)} (${nack})`);
    }
  }
  const { proxies, namespaces, conditions, restart, handover, observedGeneration } = world.status() ?? {};
  const converged = conditions?.find(({ type }) => type === "Converged");
  expect({ says, converged, restart, handover }).toMatchObject({
    says: [],
    restart: undefined,
    handover: undefined,
    converged: { status: "True", reason: "InSync" },
  });
  const live = world.proxies.size;
  expect(proxies).toEqual({ total: live, connected: live, synced: live });
  expect(namespaces?.moving).toBe(0);
  expect(observedGeneration).toBe(world.cluster.app(SHOP)?.metadata.generation);
  expect(live === 0 ? ["NotIntercepted"] : ["InSync", "SubsetWithoutPods"]).toContain(
    conditions?.find(({ type }) => type === "Ready")?.reason,
  );
}

// The world itself checks that everybody has the whole view by then.
async function expectDeleted({ world }: Run): Promise<void> {
  await world.cluster.deleteApp(SHOP);
  await settleFully(world);
  expect(world.hasApp()).toBe(false);
}
