// The acts of the demo beside its first one (test/integration/demo/demo.test.ts), each as a child without a terminal.
import { afterEach, expect, test } from "vitest";
import { createKubeClient } from "../../src/kube/client/client.ts";
import { STATEFUL_SETS } from "../../src/kube/client/resources.ts";
import { loadConnection } from "../../src/runtime/kubeconfig.ts";
import { DEMO_BUDGET_MS, startDemo } from "../support/demo-process.ts";
import { eventually } from "../support/eventually.ts";
import { childrenOf, isAlive } from "../support/processes.ts";

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

function start(...args: string[]) {
  const demo = startDemo(...args);
  closing.push(demo.close);
  return demo;
}

async function patchStatefulSet(kubeconfig: string, replicas: number): Promise<void> {
  const client = createKubeClient(await loadConnection({ kubeconfig, env: {}, userAgent: "test" }));
  await client.patch(
    STATEFUL_SETS,
    { namespace: "foo-system", name: "foo-operator" },
    { type: "merge", body: { spec: { replicas } } },
  );
  await client.close();
}

test("the second act scales a sharded StatefulSet up and down, and no shard writes late; with --keep it stays up until an interrupt", {
  timeout: 3 * DEMO_BUDGET_MS,
}, async () => {
  const { pid, output, ended, leftovers } = start("sharding", "--keep");
  await eventually(() => output.stdout.includes("get foos -A") || !isAlive(pid), 2 * DEMO_BUDGET_MS);
  expect(output.stderr).toBe("");
  for (const line of [
    /^1\/4 {2}Starting an API server/m,
    /^ +shard foo-0-canary: foo-operator-0$/m,
    /^ +foo-0-canary +1\/1 +foo-operator-0 +2 +2$/m,
    /^ +foo-operator +True +6 to 7 +4 of 4 proxies enforce route \d+$/m,
    /^3\/4 {2}kubectl scale statefulset foo-operator --replicas=6: from 3 to 5 normal shards/m,
    /^ +foo-5-normal +1\/1 +foo-operator-5 +4 +4$/m,
    /^ +foo-operator +True +4 +6 of 6 proxies enforce route \d+$/m,
    /^4\/4 {2}kubectl scale statefulset foo-operator --replicas=4: from 5 to 3 normal shards/m,
    /^ +from 3 to 5 +\d+ +8$/m,
    /^ +from 5 to 3 +8 +8$/m,
    /^ +writes by a shard after another one had taken the namespace over: 0$/m,
    /^ +Every step succeeded\. \d+\.\d s\.$/m,
    /^kubectl --kubeconfig \S+\/foo-operator-0\/kubeconfig get foos -A$/m,
  ]) {
    expect(output.stdout).toMatch(line);
  }
  const page = /^dashboard: (http:\S+)$/m.exec(output.stdout)?.[1] ?? "";
  expect(page).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}\/#\/map\?app=foo-system\/foo-operator$/);
  expect(await (await fetch(page)).text()).toContain("<title>Controller Mesh</title>");
  // It plays the StatefulSet controller as long as it is up, also for pods whose names have been in use.
  await patchStatefulSet(/^kubectl --kubeconfig (\S+) get shardingconfigs -A$/m.exec(output.stdout)?.[1] ?? "", 6);
  await eventually(() => childrenOf(pid).length === 2 + 2 * 6 || !isAlive(pid), DEMO_BUDGET_MS);
  expect(output.stderr).toBe("");
  const children = childrenOf(pid);
  process.kill(pid, "SIGINT");
  expect(await ended).toBe(130);
  expect(children.filter((child) => isAlive(child.pid))).toEqual([]);
  expect(leftovers()).toEqual([]);
});

test("the act of the webhooks shows that the owner's pod answers, whichever pod is called", {
  timeout: 2 * DEMO_BUDGET_MS,
}, async () => {
  const { output, ended, leftovers } = start("webhooks");
  expect(await ended).toBe(0);
  expect(output.stderr).toBe("");
  for (const line of [
    /^ +canary-eu\/picked-default +v2 +foo-operator-0 +foo-operator-v2-0$/m,
    /^ +team-a\/picked-v2 +default +foo-operator-v2-0 +foo-operator-0$/m,
    /^ +\d+ calls, none failed: \d+ by foo-operator-0, then \d+ by foo-operator-v2-0\.$/m,
    /^ +team-c: 503 ctrlmesh: /m,
    /^ +team-a: defaulted by foo-operator-0$/m,
    /^ +Foos that a pod of another subset has defaulted: 0$/m,
  ]) {
    expect(output.stdout).toMatch(line);
  }
  expect(leftovers()).toEqual([]);
});

test("the act of the clusters shows that each cluster, and each namespace inside one, has one writer, also while it moves", {
  timeout: 2 * DEMO_BUDGET_MS,
}, async () => {
  const { output, ended, leftovers } = start("clusters");
  expect(await ended).toBe(0);
  expect(output.stderr).toBe("");
  for (const line of [
    /^ +us +us +default +True +no pod of another subset can write/m,
    /^ +us +eu +v2 +True +no pod of another subset can write/m,
    /^ +eu +\d+ +v2$/m,
    /^ +us +\d+ +default, then v2$/m,
    /^ +403: ctrlmesh: .* namespace "team-b" belongs to subset "v2"/m,
    /^ +ap +default \d+, v2 2 +True/m,
    /^ +ap\/team-a +\d+ +v2$/m,
    /^ +ap\/team-b +\d+ +default, then v2$/m,
    /^ +writes while another subset wrote there: 0$/m,
  ]) {
    expect(output.stdout).toMatch(line);
  }
  expect(leftovers()).toEqual([]);
});
