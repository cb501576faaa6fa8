// docs/concepts/failure.md, "a node that does not answer": the second node is cut off, its pods are removed by force, and it comes back. Then
// only the kubelet stops, so that a pod that is removed by force can still write.
import { expect } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { processesOf } from "../host-processes.ts";
import { setLink } from "../hosts.ts";
import type { RealNode } from "../node.ts";
import { addNote } from "../table.ts";
import { flow, subsetOf, type World } from "../world.ts";
import { operatorWrites } from "../writes.ts";
import { onLoss } from "./moves.ts";
import { allReady, converged, HOME } from "./operator.ts";
import { leadOnSecond, podsOn, rolledOut } from "./places.ts";

/** In the operator's pods; Kubernetes has 300. */
const TOLERATED_SECONDS = 10;
/** With client-go's times a candidate looks at the lock every 2 to 4.4 s, and takes it when it has not changed for 15 s. */
const LEASE_MS = 15_000 + 2 * 4_400;
/** The manager grants a removed pod's namespaces to nobody for 12 s, since the API server may accept the pod's token for 10 s. */
const GRACE_MS = 12_000;
const TOKEN_MS = 10_000;
/** For requests, and for the steps of a pod's start. */
const MARGIN_MS = 10_000;

interface AppStatus {
  readonly status: { readonly handover?: { readonly waitingOn?: readonly { readonly pod: string; readonly reason: string }[] } };
}

export function lostNode(world: () => World): void {
  /** The pods that were on the second node when it was cut off. */
  let lostPods: string[] = [];
  let cutMs = 0;

  flow("the leader and the canary on the second node, which tolerate its silence for 10 s", world, async (own) => {
    await tolerate(own);
    await onLoss(own, "InPlace");
    const canary = await own.podNames(HOME, "version=v2");
    await leadOnSecond(own, ...canary);
    await converged(own);
  });

  flow("partition: the second node is cut off, others lead", world, async (own) => {
    const [first, second] = own.nodes;
    lostPods = await podsOn(own, second.name);
    expect(lostPods).toHaveLength(2);
    await setLink(first, second, "down");
    cutMs = Date.now();
    const team = (namespace: string, subset: string) =>
      firstWriteMs(own, namespace, cutMs, (pod) => isOther(pod, lostPods, subset));
    checkTime(own, "next leader's first write after the cut", (await team("team-a", "")) - cutMs, LEASE_MS);
    await own.run("wait", `node/${second.name}`, "--for=condition=Ready=Unknown", "--timeout=60s");
    await eventually(async () => expect(await terminating(own)).toEqual([...lostPods].sort()), 60_000);
    await team("team-b", "v2");
    await rolledOut(own);
  });

  flow("partition: a namespace waits for the lost pod, until that is removed by force", world, async (own) => {
    const [canary = ""] = lostPods.filter((pod) => subsetOf(pod) === "v2");
    own.owners["team-b"]?.push({ sinceMs: Date.now(), subset: "" });
    await own.run("label", "namespace", "team-b", "ns-type-");
    await eventually(async () => {
      const { status } = await own.get<AppStatus>("virtualapp", "foo-operator", "-n", HOME);
      expect(status.handover?.waitingOn).toContainEqual(expect.objectContaining({ pod: canary, reason: "NotConnected" }));
    }, 90_000);
    const removedMs = Date.now();
    for (const pod of lostPods) await own.run("delete", "pod", pod, "-n", HOME, "--force", "--grace-period=0");
    const granted = (await firstWriteMs(own, "team-b", removedMs, (pod) => subsetOf(pod) === "")) - removedMs;
    checkTime(own, "first write in the namespace of a pod that was removed by force", granted, GRACE_MS);
    expect(granted).toBeGreaterThan(GRACE_MS - 1_000);
    await converged(own);
  });

  flow("partition: the second node comes back", world, async (own) => {
    const [first, second] = own.nodes;
    await setLink(first, second, "up");
    await own.run("wait", `node/${second.name}`, "--for=condition=Ready", "--timeout=60s");
    await noContainersOf(second, lostPods);
    await allReady(own, HOME);
    await converged(own);
    expect(writesOf(own, lostPods, cutMs)).toEqual([]);
  });

  flow("a pod is removed by force while it leads and its kubelet stands still", world, async (own) => {
    const [, second] = own.nodes;
    const leader = await leadOnSecond(own);
    await converged(own);
    await own.run("cordon", second.name);
    const kubelet = processesOf(second).find(({ command }) => command.includes(`--hostname-override=${second.name}`));
    if (kubelet === undefined) throw new Error(`no kubelet runs on ${second.name}`);
    process.kill(kubelet.pid, "SIGSTOP");
    try {
      await own.run("delete", "pod", leader, "-n", HOME, "--force", "--grace-period=0");
      const removedMs = Date.now();
      own.owners["team-b"]?.push({ sinceMs: removedMs, subset: "v2" });
      await own.run("label", "namespace", "team-b", "ns-type=canary-1");
      const granted = (await firstWriteMs(own, "team-b", removedMs, (pod) => subsetOf(pod) === "v2")) - removedMs;
      checkTime(own, "another subset's first write after a removal by force", granted, GRACE_MS);
      expect(granted).toBeGreaterThan(GRACE_MS - 1_000);
      const next = (await firstWriteMs(own, "team-a", removedMs, (pod) => isOther(pod, [leader], ""))) - removedMs;
      checkTime(own, "the next leader's first write after a removal by force", next, TOKEN_MS + LEASE_MS);
      // 0 to 10 s: the API server checks a token again 10 s after its last check.
      const last = Math.max(removedMs, ...writesOf(own, [leader], removedMs).map(({ answeredMs }) => answeredMs)) - removedMs;
      addNote(own.folder, `the removed pod's last write after that: ${(last / 1000).toFixed(1)} s`);
      expect(last).toBeLessThan(GRACE_MS);
    } finally {
      process.kill(kubelet.pid, "SIGCONT");
    }
    await own.run("wait", `node/${second.name}`, "--for=condition=Ready", "--timeout=60s");
    await noContainersOf(second, [leader]);
    await own.run("uncordon", second.name);
    await rolledOut(own);
    await onLoss(own, "Restart");
  });
}

/** The pods' objects go when their node has been silent for a while. */
async function tolerate(world: World): Promise<void> {
  const toleration = (key: string) => ({ key, operator: "Exists", effect: "NoExecute", tolerationSeconds: TOLERATED_SECONDS });
  const tolerations = ["unreachable", "not-ready"].map((state) => toleration(`node.kubernetes.io/${state}`));
  const patch = JSON.stringify({ spec: { template: { spec: { tolerations } } } });
  await world.run("patch", "deployment", "foo", "foo-canary", "-n", HOME, "-p", patch);
  await rolledOut(world);
}

/** The pods that have been deleted and have not ended. */
async function terminating(world: World): Promise<string[]> {
  const { items } = await world.get<{ items: { metadata: { name: string; deletionTimestamp?: string } }[] }>("pods", "-n", HOME);
  return items.flatMap(({ metadata }) => (metadata.deletionTimestamp === undefined ? [] : [metadata.name])).sort();
}

/** Waits until such a pod writes in the namespace, and returns when. */
function firstWriteMs(world: World, namespace: string, sinceMs: number, isWriter: (pod: string) => boolean): Promise<number> {
  return eventually(
    () => {
      const writes = operatorWrites(world.kube, [namespace], sinceMs).filter(({ pod, code }) => isWriter(pod) && code < 300);
      return writes[0]?.answeredMs ?? false;
    },
    { withinMs: 120_000, everyMs: 250 },
  );
}

function isOther(pod: string, lost: readonly string[], subset: string): boolean {
  return !lost.includes(pod) && subsetOf(pod) === subset;
}

function writesOf(world: World, pods: readonly string[], sinceMs: number) {
  return operatorWrites(world.kube, Object.keys(world.owners), sinceMs).filter(
    ({ pod, code }) => pods.includes(pod) && code < 300,
  );
}

/** The kubelet ends the containers of pods that are gone. */
async function noContainersOf(node: RealNode, pods: readonly string[]): Promise<void> {
  await eventually(
    async () => {
      const containers = await node.ctr("containers", "ls", "--quiet");
      const labels = await Promise.all(
        containers
          .split("\n")
          .filter(Boolean)
          .map((id) => node.ctr("containers", "info", id)),
      );
      expect(pods.filter((pod) => labels.some((text) => text.includes(pod)))).toEqual([]);
    },
    { withinMs: 90_000, everyMs: 1_000 },
  );
}

/** Adds the time as a line below the table. Fails if it exceeds the bound by `MARGIN_MS`. */
function checkTime(world: World, what: string, ms: number, boundMs: number): void {
  addNote(world.folder, `${what}: ${(ms / 1000).toFixed(1)} s`);
  expect(ms).toBeLessThan(boundMs + MARGIN_MS);
}
