import { expect, test } from "vitest";
import type { AppPart, PolicyPart } from "./parts.ts";
import { waitingItems } from "./waiting.ts";

const READY = { status: "True", reason: "InSync", message: "", isCurrent: true };
const CALM: AppPart = {
  part: "app",
  kind: "VirtualApp",
  namespace: "ops",
  name: "shop",
  ready: READY,
  isPaused: false,
  frozen: [],
  subsets: [{ name: "default", namespaces: 4, readyPods: 2, pods: 2 }],
  problems: [],
  unread: [],
};
const POLICY: PolicyPart = {
  part: "policy",
  kind: "CircuitBreaker",
  namespace: "ops",
  name: "deletes",
  ready: READY,
  open: [],
  problems: [],
  unread: [],
};
const [EARLY, LATE] = ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"];
const handover = { from: "default", to: "v2", phase: "Draining" as const, since: LATE, namespaces: 2, done: 1, total: 3 };

const linesOf = (...parts: (AppPart | PolicyPart)[]) =>
  waitingItems(parts).map(({ urgency, what, whom, since }) => [urgency, what, whom, since].filter((text) => text !== undefined));

test("an app and a policy that are as they should be wait for nothing", () => {
  expect(waitingItems([CALM, { ...POLICY, pods: { total: 2, synced: 2, opened: 0 } }])).toEqual([]);
});

test("a handover waits for the pods that it names, else for those that are not through", () => {
  const waitingOn = [{ namespace: "team-b", pod: "shop-1", reason: "WriteInFlight", since: EARLY }];
  expect(linesOf({ ...CALM, handover: { ...handover, waitingOn } })).toEqual([
    ["waits", "namespace team-b moving from default to v2", "pod shop-1: WriteInFlight", EARLY],
  ]);
  expect(linesOf({ ...CALM, handover })).toEqual([
    ["waits", "2 namespaces moving from default to v2", "2 of 3 pods: Draining", LATE],
  ]);
});

test("a pause waits for a person, with the command that ends it", () => {
  const [item] = waitingItems([{ ...CALM, isPaused: true, handover: { ...handover, phase: "Paused" } }]);
  expect(item).toMatchObject({
    urgency: "held",
    whom: "a person, who has paused the app",
    next: ["ctrlmesh", "resume", "shop", "-n", "ops"],
  });
  expect(linesOf({ ...CALM, isPaused: true })).toEqual([
    ["held", "paused: no namespace moves", "a person, who has paused the app"],
  ]);
});

test("a frozen namespace waits for a person, with the reason and the command that thaws it", () => {
  const [item] = waitingItems([{ ...CALM, frozen: [{ namespace: "team-b", reason: "restore of a backup" }] }]);
  expect(item).toMatchObject({ urgency: "held", what: "namespace team-b frozen", message: "restore of a backup" });
  const [inside] = waitingItems([{ ...CALM, frozen: [{ cluster: "eu-1", namespace: "team-b", reason: "x" }] }]);
  expect(inside).toMatchObject({ what: "namespace team-b of cluster eu-1 frozen" });
  expect(inside?.next.join(" ")).toMatch(/^ctrlmesh thaw team-b --cluster eu-1 --app shop /);
  expect(item?.next.join(" ")).toBe("ctrlmesh thaw team-b --app shop -n ops");
});

test("a subset without pods, lost proxies, a restart, a rollout and false conditions are said with their reasons", () => {
  const app: AppPart = {
    ...CALM,
    subsets: [{ name: "v2", namespaces: 7, readyPods: 0, pods: 1, reason: "SubsetWithoutPods", waitingSince: LATE }],
    proxies: { total: 3, connected: 1, synced: 1, awaySince: EARLY },
    restart: {
      subset: "v2",
      pod: "shop-2",
      uid: "u",
      since: LATE,
      left: 2,
      reason: "PodDisruptionBudget",
      message: "it allows none",
    },
    shards: { rollout: { done: 1, total: 4, waitingFor: "Soaking" } },
    problems: [{ type: "Accepted", reason: "Invalid", message: "spec.x", since: EARLY }],
  };
  expect(linesOf(app)).toEqual([
    ["stuck", "Accepted is False", "Invalid", EARLY],
    ["stuck", "routes for all pods", "2 of 3 pods without a connection to the manager", EARLY],
    ["stuck", "v2, owner of 7 namespaces", "SubsetWithoutPods, 0 of 1 pods ready", LATE],
    ["waits", "restart of 2 pods of v2", "pod shop-2: PodDisruptionBudget", LATE],
    ["waits", "rollout, 1 of 4 pods done", "Soaking"],
  ]);
});

test("Converged is not said beside the handover that it is about", () => {
  const problems = [{ type: "Converged", reason: "Moving", message: "", since: LATE }];
  expect(linesOf({ ...CALM, problems })).toEqual([["stuck", "Converged is False", "Moving", LATE]]);
  expect(linesOf({ ...CALM, problems, handover })).toHaveLength(1);
});

test("open breakers and faults wait for a person, since the first pod", () => {
  const open = [
    { pod: "shop-0", rule: "deletes", state: "Opened", cause: "31 deletes", since: LATE },
    { pod: "shop-1", rule: "deletes", state: "HalfOpen", since: EARLY },
  ];
  const [item] = waitingItems([{ ...POLICY, open, pods: { total: 3, synced: 3, opened: 1 } }]);
  expect(item).toMatchObject({
    what: "breaker open in 2 pods",
    since: EARLY,
    message: "31 deletes",
    next: ["ctrlmesh", "recover", "deletes", "-n", "ops"],
  });
  expect(linesOf({ ...POLICY, faultsSince: EARLY })).toEqual([["held", "injects faults", "a person, who deletes it", EARLY]]);
});

test("what another version has written is said, and hides nothing else", () => {
  expect(linesOf({ ...CALM, unread: ["handover"], isPaused: true })).toEqual([
    ["stuck", "a part of the status is not shown", "another version has written: handover"],
    ["held", "paused: no namespace moves", "a person, who has paused the app"],
  ]);
});
