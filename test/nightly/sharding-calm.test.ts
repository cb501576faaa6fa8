// What moves namespaces between the shards of a StatefulSet, and what does not, on the real control plane: pods that start one after the other,
// and a pod that becomes unready again and again. The pods are proxies alone.
import { afterAll, beforeAll, expect, it } from "vitest";
import { SHARDING_CONFIGS } from "../../src/api/resources.ts";
import { storedPlacement } from "../../src/manager/sharding/stored-placement.ts";
import { eventually } from "../support/eventually.ts";
import { injectedWorkload } from "../support/injected-workload.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, startMesh } from "../support/mesh.ts";
import { type PodRunner, startPodRunner } from "../support/pod-runner.ts";
import { describeWithKube } from "../support/requirements.ts";
import { familyRoot } from "../support/sharding-config.ts";

const ROOT = { namespace: "foo-system", name: "foo-operator" };
const NAMES = Array.from({ length: 96 }, (_, index) => `team-${index}`);
const GRACE_SECONDS = 5;
const LOOK_MS = 100;
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describeWithKube("a family of shards", () => {
  let kube: Kube;
  let mesh: Mesh;
  let runner: PodRunner;
  const ending = new AbortController();
  /** The active shards so far, without repetitions. */
  const history: (readonly number[])[] = [];

  const config = () => mesh.client.get(SHARDING_CONFIGS, ROOT);
  const workload = (replicas: number) =>
    injectedWorkload({ kind: "StatefulSet", name: "foo", replicas, version: "v1", startsInOrder: true });
  const owned = async () =>
    ((await config()).status?.subsets ?? []).filter(({ name }) => name !== "default").map(({ namespaces }) => namespaces);
  const untilActive = (count: number) => eventually(async () => expect(history.at(-1)).toEqual(upTo(count)), 120_000);

  async function watchPlacements(): Promise<void> {
    while (!ending.signal.aborted) {
      const active = await config()
        .then(storedPlacement)
        .then(
          (placement) => placement?.active,
          () => undefined,
        );
      if (active !== undefined && `${active}` !== `${history.at(-1)}`) history.push(active);
      await sleep(LOOK_MS);
    }
  }

  let watching: Promise<void> | undefined;
  beforeAll(async () => {
    kube = await startKube({ controllerManager: true });
    mesh = await startMesh({ kube });
    await Promise.all(NAMES.map((name) => mesh.createNamespace(name)));
    const auto = { everyShardReplicas: 1, graceSeconds: GRACE_SECONDS };
    await mesh.apply(JSON.stringify(familyRoot(ROOT, { statefulSet: "foo", auto, resources: [["", "configmaps"]] })));
    runner = startPodRunner({ kube, client: mesh.client, namespace: ROOT.namespace, manager: String(mesh.manager.ready.grpc) });
    watching = watchPlacements();
    await mesh.apply(workload(3));
    await untilActive(3);
  }, 180_000);
  afterAll(async () => {
    ending.abort();
    await watching;
    await runner?.stop();
    await mesh?.stop();
    await kube?.stop();
  });

  it("gets four more shards by one change, though their pods start one after the other, and each has its part", async () => {
    const before = history.length;
    await mesh.apply(workload(7));
    await untilActive(7);
    expect(history.slice(before)).toEqual([upTo(7)]);
    await eventually(async () => {
      const counts = await owned();
      expect(counts).toHaveLength(7);
      expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
    }, 60_000);
  });

  it("loses a shard once by a pod that is unready again and again, and gets it back when the pod stays ready", async () => {
    const before = history.length;
    for (let round = 0; round < 3; round++) {
      const { proxy } = runner.pods.get("foo-2")?.processes ?? {};
      proxy?.kill("SIGSTOP");
      await sleep((GRACE_SECONDS + 7) * 1000);
      proxy?.kill("SIGCONT");
      await sleep(8_000);
    }
    expect(history.slice(before)).toEqual([[1, 2, 4, 5, 6, 7]]);
    await untilActive(7);
    expect(history.slice(before)).toHaveLength(2);
    await eventually(async () => expect(Math.min(...(await owned()))).toBeGreaterThan(10), 60_000);
  });
});
