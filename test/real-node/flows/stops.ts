// A leader that works on while its pod terminates, since a preStop hook delays its SIGTERM. Its sidecar serves it until it has released its lock.
import { expect } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { podWritesOf } from "../../support/mesh/pod-writes.ts";
import { flow, type World } from "../world.ts";
import { longestPauseMs, operatorWrites } from "../writes.ts";
import { allReady, converged, HOME, leaderOf } from "./operator.ts";

const HOOK_SECONDS = 6;
/** The longest pause of writes while the hook runs. The objects change every 0.1 s. */
const PAUSE_MS = 2_000;
/** From the last write of a leader to the first of the next one. Without a release the other pods would wait for 15 s; they try every 2 to 4.4 s. */
const NEXT_LEADER_MS = 10_000;
/** The pods' terminationGracePeriodSeconds: after it the kubelet kills containers. */
const GRACE_SECONDS = 30;
/** The namespace that belongs to the default subset. */
const WRITTEN = ["team-a"];

export function stops(world: () => World): void {
  for (const [isNative, sidecar] of [
    ["true", "a native sidecar"],
    ["false", "a plain container"],
  ] as const) {
    flow(`restart the operator, with a preStop hook of ${HOOK_SECONDS} s and ${sidecar}`, world, (own) =>
      changePods(own, { "ctrlmesh.kruise.io/native-sidecar": isNative }, { preStop: { sleep: { seconds: HOOK_SECONDS } } }),
    );
    flow(`delete the leader's pod, with that hook and ${sidecar}`, world, deleteLeader);
  }

  flow("restart the operator without the hook", world, (own) =>
    changePods(own, { "ctrlmesh.kruise.io/native-sidecar": null }, null),
  );
}

async function changePods(world: World, annotations: object, lifecycle: object | null): Promise<void> {
  const containers = [{ name: "operator", lifecycle }];
  const spec = { containers, terminationGracePeriodSeconds: lifecycle === null ? 10 : GRACE_SECONDS };
  const patch = JSON.stringify({ spec: { template: { metadata: { annotations }, spec } } });
  await world.run("patch", "deployment", "foo", "-n", HOME, "-p", patch);
  await settled(world);
}

async function deleteLeader(world: World): Promise<void> {
  const leader = await leaderOf(world);
  const { kube } = world;
  const deletedMs = Date.now();
  const writes = (isLeader: boolean) =>
    operatorWrites(kube, WRITTEN, deletedMs).filter(({ pod, code }) => (pod === leader) === isLeader && code < 300);
  await world.run("delete", "pod", leader, "-n", HOME, "--timeout=60s");
  expect(Date.now() - deletedMs).toBeLessThan(GRACE_SECONDS * 1000);
  const [first] = await eventually(() => writes(false).length > 0 && writes(false), 30_000);

  const own = writes(true);
  expect(longestPauseMs(own, WRITTEN, deletedMs, deletedMs + HOOK_SECONDS * 1000)).toBeLessThan(PAUSE_MS);
  const lastMs = own.at(-1)?.answeredMs ?? 0;
  // The operator reaches the API server through its sidecar only, so the sidecar has outlived it.
  const leases = podWritesOf(kube.audit()).filter(({ resource, name }) => resource === "leases" && name === "foo-operator");
  const release = leases.filter(({ pod, code }) => pod === leader && code < 300).at(-1);
  expect(release?.receivedMs).toBeGreaterThan(lastMs);
  expect(first?.receivedMs).toBeGreaterThan(release?.answeredMs ?? 0);
  expect((first?.receivedMs ?? 0) - lastMs).toBeLessThan(NEXT_LEADER_MS);
  await settled(world);
}

/** Waits for the rollout, and then for the end of the old pods, for which a rollout does not wait. */
async function settled(world: World): Promise<void> {
  await world.rolledOut("deployment/foo", HOME);
  await allReady(world, HOME);
  await converged(world);
}
