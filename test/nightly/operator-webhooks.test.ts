// An operator's webhooks on the real control plane, as in test/e2e/operator-webhooks.test.ts: 10,000 reviews while namespaces move, a rollout of
// all pods under load, pods that are killed and stopped, a subset without pods, and shards behind iptables. `npm test` shows the last two on localkube:
// webhooks-bad-days.test.ts and iptables.test.ts.
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { startAdmissionLoad } from "../support/install/admission-load.ts";
import { admitWhileMoving } from "../support/install/admit-while-moving.ts";
import { type GadgetWorld, startGadgetWorld, subsetOf } from "../support/install/gadget-world.ts";
import {
  DEFAULTED_BY,
  GADGET_NAMESPACE,
  GADGET_OPERATOR,
  GADGETS,
  gadgetHome,
  gadgetWebhooks,
  gadgetWorkload,
  RECONCILED_BY,
} from "../support/install/gadgets.ts";
import { answerWhileStruck, signalled } from "../support/install/struck-pod.ts";
import { describeWithTestNode } from "../support/requirements.ts";
import { familyRoot } from "../support/sharding-config.ts";

const CALLS = 5_000; // two reviews each
const RIGHT = { wrong: [], answeredTwice: [] };

describeWithTestNode("an operator's webhooks, for longer", () => {
  let world: GadgetWorld;
  beforeAll(async () => {
    world = await startGadgetWorld();
  });
  afterAll(async () => {
    await world?.stop();
  });

  const create = (namespace: string, name: string, { dryRun = false } = {}) =>
    world.client.create(GADGETS, { metadata: { namespace, name }, spec: {} }, { dryRun });
  const defaultedBy = async (namespace: string) =>
    (await create(namespace, `probe-${Math.random()}`, { dryRun: true })).metadata.annotations?.[DEFAULTED_BY] ?? "";

  it("are each answered once and by the owner in 10,000 reviews while namespaces move, without a failed call", async () => {
    const result = await admitWhileMoving(world, CALLS);
    expect(result).toMatchObject({ ...RIGHT, failed: [] });
    expect(result.reviews).toBeGreaterThanOrEqual(2 * CALLS);
    expect(result.moves).toBeGreaterThan(10);
  }, 300_000);

  it("lose no call while all pods are replaced, one subset after the other", async () => {
    await world.addNamespace("team-a", "");
    await world.addNamespace("canary-a", "v2");
    const load = startAdmissionLoad(world.client, ["team-a", "canary-a"]);
    for (const workload of ["deployment/gadget", "deployment/gadget-canary"]) {
      await world.mesh.run("rollout", "restart", workload, "-n", GADGET_NAMESPACE);
      await world.mesh.rolledOut(workload, GADGET_NAMESPACE);
      const before = load.calls.length;
      await eventually(() => load.calls.length > before + 500, 60_000);
    }
    await load.end();
    expect(load.calls.flatMap(({ error }) => error ?? [])).toEqual([]);
    expect(await world.judge(load.calls)).toMatchObject(RIGHT);
  }, 300_000);

  it.each([
    ["killed", "SIGKILL", undefined],
    ["stopped", "SIGSTOP", "SIGCONT"],
  ] as const)("get no wrong and no late answer while a pod of the owner is %s", async (_, strike, mend) => {
    await answerWhileStruck(world, signalled(world, strike), mend && signalled(world, mend));
  });

  it("fail with 503 while no pod of the owner is there, so that failurePolicy decides", async () => {
    const scale = (replicas: number) =>
      world.mesh.run("scale", "deployment/gadget-canary", "-n", GADGET_NAMESPACE, `--replicas=${replicas}`);
    await scale(0);
    await world.mesh.run("wait", "--for=delete", "pod", "-l", "version=v2", "-n", GADGET_NAMESPACE, "--timeout=60s");
    await expect(create("canary-a", "orphan")).rejects.toThrow(
      /failed calling webhook "mutate.demo.ctrlmesh.io".*ctrlmesh: subset "v2" has no pod/,
    );
    expect(subsetOf(await defaultedBy("team-a"))).toBe("");
    await world.mesh.apply(...gadgetWebhooks(world.caPem, "Ignore"));
    const unstamped = await eventually(() => create("canary-a", "ignored", { dryRun: true }));
    expect(unstamped.metadata.annotations?.[DEFAULTED_BY]).toBeUndefined();
    await world.mesh.apply(...gadgetWebhooks(world.caPem));
    await scale(2);
    await eventually(async () => subsetOf(await defaultedBy("canary-a")) === "v2", 30_000);
  });

  it("go to the shard that owns the namespace, intercepted by iptables behind a numeric target port", async () => {
    const { apply, run: kubectl } = world.mesh;
    await kubectl("delete", "virtualapp", GADGET_OPERATOR, "-n", GADGET_NAMESPACE);
    await kubectl("delete", "deployment", "gadget", "gadget-canary", "-n", GADGET_NAMESPACE, "--cascade=foreground");
    await apply(...gadgetHome(world.caPem, { targetPort: 9443, security: "privileged" }));
    const resources = [[GADGETS.group, GADGETS.resource]] as const;
    const root = familyRoot({ namespace: GADGET_NAMESPACE, name: GADGET_OPERATOR }, { statefulSet: "gadget-shard", resources });
    await apply({ ...root, spec: { ...root.spec, webhook: { certDir: "/certs", port: 9443 } } });
    await kubectl(
      "wait",
      "shardingconfig",
      GADGET_OPERATOR,
      "-n",
      GADGET_NAMESPACE,
      "--for=condition=InjectionReady",
      "--timeout=60s",
    );
    const annotations = { "ctrlmesh.kruise.io/intercept": "iptables" };
    await apply(gadgetWorkload({ kind: "StatefulSet", name: "gadget-shard", replicas: 2, version: "v1", annotations }));
    await world.mesh.rolledOut("statefulset/gadget-shard", GADGET_NAMESPACE);
    const reconcilers = new Set<string>();
    for (const namespace of ["team-a", "canary-a", "moving-a", "moving-b"]) {
      await eventually(() => create(namespace, `${namespace}-sharded`), 30_000);
      const by = await eventually(async () => {
        const { metadata } = await world.client.get(GADGETS, { namespace, name: `${namespace}-sharded` });
        return metadata.annotations?.[RECONCILED_BY] ?? false;
      }, 30_000);
      reconcilers.add(by);
      for (let index = 0; index < 10; index++) expect(await defaultedBy(namespace)).toBe(by);
    }
    expect(reconcilers.size).toBe(2);
  });
});
