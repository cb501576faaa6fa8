import { expect, it } from "vitest";
import { createAcceptedPolicies, isDoubtful } from "./accepted-policies.ts";
import type { Policy, PolicyKind, PolicyObject } from "./policy-kind.ts";

const POLICY: Policy = {
  rules: { limits: [], faults: [], egress: [] },
  off: "",
  endsMs: undefined,
  isFor: () => true,
  notes: [],
};
const PROBLEMS = [{ path: "spec", message: "required" }];
/** A kind whose objects are valid if they have the label `valid`. */
const kind: PolicyKind = {
  resource: { group: "g", version: "v1", resource: "rs", kind: "R", namespaced: true },
  compile: ({ metadata }) =>
    metadata.labels?.valid === "true" ? { ok: true, value: POLICY } : { ok: false, problems: PROBLEMS },
};
const object = (valid: boolean, currentSpecHash?: string): { kind: PolicyKind; object: PolicyObject } => ({
  kind,
  object: {
    metadata: { name: "a", uid: "u", labels: { valid: String(valid) } },
    ...(currentSpecHash !== undefined && {
      status: { currentSpecHash, targets: { total: 1, synced: 1, opened: 0 }, targetStatus: [{ podName: "pod" }] },
    }),
  },
});

it("an invalid spec leaves the previous one in force", () => {
  const accepted = createAcceptedPolicies();
  accepted.update("ns", [object(true)]);
  const [known] = accepted.update("ns", [object(false, "hash")]);
  expect(known).toMatchObject({ policy: POLICY, problems: PROBLEMS });
  expect(known && isDoubtful(known)).toBe(false);
});

it("an object that was never valid is no doubt, one that was in force under an earlier manager is", () => {
  const [never] = createAcceptedPolicies().update("ns", [object(false, "")]);
  const [once] = createAcceptedPolicies().update("ns", [object(false, "hash")]);
  expect([never, once].map((known) => known && isDoubtful(known))).toEqual([false, true]);
});

it("an object that was deleted and made again starts anew", () => {
  const accepted = createAcceptedPolicies();
  accepted.update("ns", [object(true)]);
  accepted.update("ns", []);
  expect(accepted.update("ns", [object(false)])[0]?.policy).toBeUndefined();
});

it("a policy beyond the share of its namespace is refused, keeps the rules that it had, and is compiled once there is a place", () => {
  const accepted = createAcceptedPolicies();
  const policy = (name: string, day: number) => {
    const { object: one } = object(true);
    const metadata = { ...one.metadata, name, uid: name, creationTimestamp: `2026-01-0${day}T00:00:00Z` };
    return { kind, object: { ...one, metadata } };
  };
  const old = Array.from({ length: 256 }, (_, at) => policy(`z${at}`, 1));
  const refusals = () => accepted.update("ns", [...old, policy("a", 2)]).filter(({ problems }) => problems.length > 0);
  expect(refusals()).toMatchObject([{ object: { metadata: { name: "a" } }, policy: undefined }]);
  expect(accepted.update("ns", [...old.slice(1), policy("a", 2)]).every(({ policy: is }) => is === POLICY)).toBe(true);
  expect(refusals()).toMatchObject([{ object: { metadata: { name: "a" } }, policy: POLICY }]);
});
