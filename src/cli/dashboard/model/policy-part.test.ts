import { expect, test } from "vitest";
import { policyPart } from "./policy-part.ts";

const SINCE = "2026-01-01T00:00:00Z";
const condition = (type: string, status: string, reason = "Reason") => ({
  type,
  status,
  reason,
  message: "text",
  lastTransitionTime: SINCE,
  observedGeneration: 2,
});
const part = (status: unknown) =>
  policyPart("CircuitBreaker", {
    metadata: { namespace: "ops", name: "guard", generation: 2 },
    ...(status !== undefined && { status }),
  });

test("a breaker that failures have opened is shown, and one that tests the server; a rule that always refuses is not", () => {
  const snapshots = [
    { name: "opened", state: "Opened", cause: "31 deletes", lastTransitionTime: SINCE },
    { name: "tests", state: "HalfOpen" },
    { name: "always", state: "Opened" },
    { name: "closed", state: "Closed" },
  ];
  expect(part({ targetStatus: [{ podName: "shop-0", limitingSnapshots: snapshots }] }).open.map(({ rule }) => rule)).toEqual([
    "opened",
    "tests",
  ]);
});

test("that nothing is open or active is no problem, and a refused spec is one, with its reason", () => {
  const conditions = [
    condition("Ready", "False"),
    condition("Open", "False"),
    condition("Active", "False"),
    condition("Accepted", "False", "Invalid"),
  ];
  expect(part({ conditions }).problems).toEqual([{ type: "Accepted", reason: "Invalid", message: "text", since: SINCE }]);
});

test("faults count while they are enforced, not in Shadow", () => {
  const conditions = [condition("Active", "True")];
  expect(part({ conditions, mode: "Enforce" }).faultsSince).toBe(SINCE);
  expect(part({ conditions, mode: "Shadow" }).faultsSince).toBeUndefined();
});

test.each([
  [undefined, []],
  ["text", ["status"]],
  [{ targets: 7, mode: "Enforce" }, ["targets"]],
])("a status of %j is read as far as it can be", (status, unread) => {
  expect(part(status)).toMatchObject({ name: "guard", open: [], problems: [], unread });
});
