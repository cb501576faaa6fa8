// What happens to nodes and pods: a leader is deleted, a sidecar is killed or has no memory left, kubelet and containerd restart, the node loses
// power, the managers are away, the node is drained. Each time the operator writes again within a bound, and never from two pods at once.
import { expect } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { MESH_NAMESPACE } from "../../support/helm.ts";
import { useUpMemory } from "../memory.ts";
import { reboot } from "../reboot.ts";
import { flow, type World } from "../world.ts";
import { allReady, converged, HOME, leaderOf, sidecarOf } from "./operator.ts";

const SIDECAR = "ctrlmesh-proxy";
const AWAY_MS = 60_000;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

export function disturbances(world: () => World): void {
  flow("delete the leader's pod", world, async (own) => {
    const leader = await leaderOf(own);
    await own.run("delete", "pod", leader, "-n", HOME);
    await eventually(async () => expect(await leaderOf(own)).not.toBe(leader), 20_000);
    await allReady(own, HOME);
  });

  flow("kill the leader's sidecar", world, async (own) => {
    const leader = await leaderOf(own);
    const before = (await sidecarOf(own, leader)).restartCount;
    await own.cluster.kill(HOME, leader, SIDECAR);
    await eventually(async () => expect((await sidecarOf(own, leader)).restartCount).toBe(before + 1), 60_000);
    await allReady(own, HOME);
  });

  flow("a sidecar reaches its memory limit", world, async (own) => {
    const pod = await leaderOf(own, "foo-operator---v2");
    const found = (await own.cluster.processesOf(HOME, pod)).find(({ name }) => name === SIDECAR);
    if (found === undefined) throw new Error(`pod ${pod} has no running sidecar`);
    await useUpMemory(found.pid);
    await eventually(async () => expect((await sidecarOf(own, pod)).lastState.terminated?.reason).toBe("OOMKilled"), 60_000);
    await allReady(own, HOME);
  });

  flow("restart kubelet and containerd", world, async (own) => {
    const before = await own.get<{ items: object[] }>("pods", "-n", HOME);
    const [node] = own.nodes;
    const { services } = node;
    await services.stop("kubelet");
    await services.stop("containerd");
    await pause(5_000);
    await node.startServices();
    await allReady(own, HOME);
    const restarts = (pods: { items: object[] }) => JSON.stringify(pods).match(/"restartCount":\d+/g);
    expect(restarts(await own.get("pods", "-n", HOME))).toEqual(restarts(before));
  });

  flow("the managers are away for a minute", world, async (own) => {
    const scale = (replicas: number) =>
      own.run("scale", "deployment", "ctrlmesh-manager", "-n", MESH_NAMESPACE, `--replicas=${replicas}`);
    await scale(0);
    const managers = ["pod", "-n", MESH_NAMESPACE, "-l", "app.kubernetes.io/name=ctrlmesh"];
    await own.run("wait", ...managers, "--for=delete", "--timeout=60s");
    const pod = ["run", "refused", "-n", HOME, "--image=none", "--labels=component=foo-operator", "--dry-run=server"];
    expect((await own.tryRun(...pod)).stderr).toContain("failed calling webhook");
    await pause(AWAY_MS);
    await scale(2);
    await own.rolledOut("deployment/ctrlmesh-manager", MESH_NAMESPACE);
    await converged(own);
    expect((await own.tryRun(...pod)).stderr).not.toContain("failed calling webhook");
  });

  flow("drain the operator's pods, uncordon", world, async (own) => {
    const [node] = own.nodes;
    const options = ["--ignore-daemonsets", "--delete-emptydir-data", "--pod-selector=component=foo-operator", "--timeout=120s"];
    await own.run("drain", node.name, ...options);
    await own.run("uncordon", node.name);
    for (const name of ["foo", "foo-canary"]) await own.rolledOut(`deployment/${name}`, HOME);
    await converged(own);
  });

  flow("the node loses power", world, async (own) => {
    const atMs = Date.now();
    await reboot(own.nodes[0]);
    for (const namespace of ["kube-system", MESH_NAMESPACE, HOME]) await allReady(own, namespace, atMs);
    await converged(own);
  });
}
