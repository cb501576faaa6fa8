// What the mesh costs on a node: the time that a sidecar adds to the start of a pod, and what containers use as the kubelet reports it. The operator
// first only renews its lease, then works without a pause.
import { expect, it } from "vitest";
import { median } from "../../../bench/table.ts";
import { OPERATOR_IMAGE } from "../../support/install/operator.ts";
import { addNote } from "../table.ts";
import { describeUsage } from "../usage.ts";
import type { World } from "../world.ts";
import { TENANTS } from "./quickstart.ts";

const NAMESPACE = "starts";
const STARTS = 4;
/** The kubelet looks at a container every 10 to 15 s. */
const USAGE_SECONDS = 45;
const BUSY = Array.from({ length: 40 }, (_, index) => ({ namespace: TENANTS[0]?.namespace ?? "", name: `busy-${index}` }));
/** One of the busy Foos changes each time this has passed. */
const BUSY_EVERY_MS = 5;

export function costs(world: () => World): void {
  it(`measures the start of a pod ${STARTS} times, without and with a sidecar`, { timeout: 300_000 }, async () => {
    const own = world();
    await own.apply(...startingPods());
    await own.run("wait", "virtualapp/meshed", "-n", NAMESPACE, "--for=condition=InjectionReady", "--timeout=60s");
    const plain = median(await startSeconds(own, "plain"));
    const meshed = median(await startSeconds(own, "meshed"));
    addNote(
      own.folder,
      `from scale to Ready: a pod ${plain.toFixed(1)} s, with a sidecar ${meshed.toFixed(1)} s (median of ${STARTS})`,
    );
    expect(meshed - plain).toBeGreaterThan(0);
    expect(meshed - plain).toBeLessThan(15);
    await own.run("delete", "virtualapp", "meshed", "-n", NAMESPACE, "--timeout=60s");
    await own.run("delete", "namespace", NAMESPACE, "--timeout=60s");
  });

  it("measures what the containers use, idle and busy", { timeout: 300_000 }, async () => {
    const own = world();
    await own.changes.stop();
    await measure(own, "idle");
    await own.apply(...BUSY.map((metadata) => ({ apiVersion: "demo.ctrlmesh.io/v1", kind: "Foo", metadata, spec: {} })));
    own.changes.start(BUSY, BUSY_EVERY_MS);
    await measure(own, "busy");
    await own.changes.stop();
    await own.run("delete", "foo", "-n", TENANTS[0]?.namespace ?? "", ...BUSY.map(({ name }) => name));
    own.changes.start(TENANTS);
  });
}

async function measure(world: World, state: string): Promise<void> {
  const lines = await describeUsage(world, USAGE_SECONDS);
  expect(lines).toHaveLength(3);
  for (const line of lines) addNote(world.folder, `${state}: ${line}`);
}

/** From the scaling of the Deployment to a ready pod, again and again. */
async function startSeconds(world: World, name: string): Promise<number[]> {
  const seconds: number[] = [];
  const scale = (replicas: number) => world.run("scale", "deployment", name, "-n", NAMESPACE, `--replicas=${replicas}`);
  for (let start = 0; start < STARTS; start++) {
    const startedMs = Date.now();
    await scale(1);
    await world.run("wait", "deployment", name, "-n", NAMESPACE, "--for=jsonpath={.status.readyReplicas}=1", "--timeout=60s");
    seconds.push((Date.now() - startedMs) / 1000);
    await scale(0);
    await world.run("wait", "pod", "-n", NAMESPACE, "-l", `component=${name}`, "--for=delete", "--timeout=60s");
  }
  return seconds;
}

/** Two Deployments of the operator's program without its rights, so that it never leads. One is in the mesh. */
function startingPods(): object[] {
  const container = {
    name: "operator",
    image: OPERATOR_IMAGE,
    args: ["--health-probe-bind-address=:8081"],
    env: [{ name: "POD_NAMESPACE", value: NAMESPACE }],
    readinessProbe: { httpGet: { path: "/readyz", port: 8081 }, periodSeconds: 1 },
  };
  const deployment = (name: string) => {
    const labels = { component: name };
    const template = { metadata: { labels }, spec: { containers: [container] } };
    const spec = { replicas: 0, selector: { matchLabels: labels }, template };
    return { apiVersion: "apps/v1", kind: "Deployment", metadata: { name, namespace: NAMESPACE }, spec };
  };
  const configuration = { controller: { leaderElectionName: "foo-operator" } };
  return [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } },
    deployment("plain"),
    deployment("meshed"),
    {
      apiVersion: "ctrlmesh.kruise.io/v1alpha1",
      kind: "VirtualApp",
      metadata: { name: "meshed", namespace: NAMESPACE },
      spec: { selector: { matchLabels: { component: "meshed" } }, configuration },
    },
  ];
}
