import { expect, it } from "vitest";
import { appPod } from "../../../test/support/pod-facts.ts";
import { canarySpec, createStatusWorld } from "../../../test/support/status-world.ts";
import type { ReplicaSet } from "../../kube/client/resources.ts";
import { changesRefusal, refusedPodsText } from "./refused-pods.ts";

const QUOTA = 'pods "foo-1-x7k2p" is forbidden: exceeded quota: tight';
const set = (name: string, message?: string, app = "foo", more: object = {}): ReplicaSet => ({
  metadata: { name },
  spec: { template: { metadata: { labels: { app } } } },
  status: {
    conditions:
      message === undefined ? [] : [{ type: "ReplicaFailure", status: "True", reason: "FailedCreate", message, ...more }],
  },
});
const OF_FOO = { selects: (labels: Readonly<Record<string, string>> | undefined) => labels?.app === "foo" };
const textOf = (...sets: readonly ReplicaSet[]) => refusedPodsText(sets, OF_FOO);

it("a ReplicaSet of the app that is refused its pods is named, with the API server's words and how many others there are", () => {
  expect(textOf(set("foo-1", QUOTA), set("foo-0"))).toBe(`; ReplicaSet foo-1 cannot create pods: ${QUOTA}`);
  expect(textOf(set("foo-2", QUOTA), set("foo-1", "b"))).toBe("; ReplicaSet foo-1 cannot create pods, nor can 1 more: b");
  expect(textOf(set("foo-1", "a\nb".padEnd(9_000, "x"))).length).toBeLessThan(500);
});

it("nothing is said of other apps' ReplicaSets, of other failures, of past ones, and before the first list", () => {
  expect(textOf(set("bar-1", QUOTA, "bar"), set("foo-1", QUOTA, "foo", { status: "False" }))).toBe("");
  expect(textOf(set("foo-1", QUOTA, "foo", { reason: "FailedDelete" }), { metadata: { name: "foo-2" } })).toBe("");
  expect(refusedPodsText(undefined, OF_FOO)).toBe("");
});

it("only the beginning, a change and the end of a refusal concern an app", () => {
  const [good, bad, worse] = [set("foo-1"), set("foo-1", QUOTA), set("foo-1", "b")];
  const updates = [
    [good, good],
    [good, bad],
    [bad, bad],
    [bad, worse],
    [worse, good],
  ] as const;
  const matters = updates.map(([previous, object]) => changesRefusal({ type: "updated", previous, object }));
  expect(matters).toEqual([false, true, false, true, true]);
  expect([good, bad].map((object) => changesRefusal({ type: "added", object }))).toEqual([false, true]);
  expect([good, bad].map((object) => changesRefusal({ type: "deleted", object }))).toEqual([false, true]);
});

it("the message of Ready ends with it, whatever its reason is", () => {
  const pods = [appPod("a", ""), appPod("c", "canary")];
  const world = createStatusWorld(canarySpec(["pilot"]), ["prod", "pilot"], pods);
  world.refusedPods = "; ReplicaSet foo-1 cannot create pods: quota";
  const ready = () => world.settle().conditions?.find(({ type }) => type === "Ready");
  expect(ready()).toMatchObject({
    status: "True",
    reason: "InSync",
    message: expect.stringMatching(/enforce route \d+; ReplicaSet foo-1/),
  });
  world.pods.delete("c");
  expect(ready()).toMatchObject({
    reason: "SubsetWithoutPods",
    message: expect.stringMatching(/reconciles there; ReplicaSet foo-1/),
  });
});
