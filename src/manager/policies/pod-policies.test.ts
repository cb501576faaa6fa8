import { describe, expect, it } from "vitest";
import { limitRule, resourceRule } from "../../../test/support/policies.ts";
import { NO_POLICIES, type PolicySet } from "../../policy/policy.ts";
import { createAcceptedPolicies } from "./accepted-policies.ts";
import { podPolicies } from "./pod-policies.ts";
import type { PolicyKind, PolicyObject } from "./policy-kind.ts";

interface Sized extends PolicyObject {
  readonly rules: PolicySet;
}

const KIND: PolicyKind<Sized> = {
  resource: { group: "g", version: "v1", resource: "rs", kind: "R", namespaced: true },
  compile: ({ rules, metadata: { labels = {} } }) => ({
    ok: true,
    value: { rules, off: "", endsMs: undefined, isFor: (pod) => labels.except !== pod.name, notes: [] },
  }),
};
const POD = { namespace: "shop", name: "p", uid: "u", ip: "", labels: {}, app: "a", subset: "", hasEgress: false, hasRun: true };

/** An object of so many rules that all look alike. */
function sized(name: string, second: number, count: number, changes = {}): Sized {
  const creationTimestamp = new Date(second * 1_000).toISOString();
  const rule = limitRule({ kind: "deny" }, { match: { resources: [resourceRule(changes)], urls: [], http: [] } });
  const limits = Array.from({ length: count }, (_, at) => ({ ...rule, origin: { ...rule.origin, name, rule: `${at}` } }));
  return { metadata: { namespace: "shop", name, uid: name, creationTimestamp }, rules: { ...NO_POLICIES, limits } };
}

function rulesOf(...objects: readonly Sized[]) {
  const known = createAcceptedPolicies().update(
    "shop",
    objects.map((object) => ({ kind: KIND as unknown as PolicyKind, object })),
  );
  const { policies, leftOut } = podPolicies(known)(POD);
  const names = new Set(policies.limits.map(({ origin }) => origin.name));
  return { names: [...names], leftOut: [...leftOut] };
}

const names = (prefix: string, count: number) => Array.from({ length: count }, (_, at) => `${prefix}-${at}`);

describe("the policies of one pod", () => {
  it("are bounded by their number: the newest objects stay out", () => {
    const objects = [sized("new", 3, 50), sized("a-small-new", 4, 24), ...names("old", 20).map((name) => sized(name, 1, 50))];
    expect(rulesOf(...objects)).toEqual({ names: ["a-small-new", ...names("old", 20).sort()], leftOut: ["new"] });
  });

  it("are bounded by their divided buckets, since a rule without a share would refuse everything", () => {
    const divided = names("o", 17).map((name, at) => {
      const object = sized(name, at, 16);
      const limiter = { kind: "bucket", perSecond: 1, burst: 1, per: "Policy" } as const;
      return { ...object, rules: { ...object.rules, limits: object.rules.limits.map((rule) => ({ ...rule, limiter })) } };
    });
    expect(rulesOf(...divided.toReversed())).toEqual({ names: names("o", 16).sort(), leftOut: ["o-16"] });
  });

  it("are bounded by what they list, and by their bytes", () => {
    const wide = { resources: names("r", 64), namespaces: names("n", 64) };
    expect(rulesOf(...names("o", 5).map((name) => sized(name, 1, 1, wide))).leftOut).toEqual(["o-4"]);
    const long = { apiGroups: names("g".repeat(200), 32) };
    expect(rulesOf(...names("o", 8).map((name) => sized(name, 1, 45, long))).leftOut).toEqual(["o-6", "o-7"]);
  });

  it("leave the same objects out in every order", () => {
    const objects = names("o", 30).map((name, at) => sized(name, at % 7, 38));
    expect(rulesOf(...objects.toReversed())).toEqual(rulesOf(...objects));
  });
});

it("a tenant's pods that all have different policies have 16 MiB together: the newest stay out, and keep what they have", () => {
  const long = { apiGroups: names("g".repeat(200), 32) };
  const objects = names("o", 12).map((name, at) => {
    const object = sized(name, 1, 24, long);
    return { ...object, metadata: { ...object.metadata, labels: { except: `p-${at}` } } };
  });
  const known = createAcceptedPolicies().update(
    "shop",
    objects.map((object) => ({ kind: KIND as unknown as PolicyKind, object })),
  );
  const pods = [...names("p", 11), "p-0"].map((name) => ({ ...POD, name })).map(podPolicies(known));
  const sizes = pods.map(({ policies, leftOut, keeps }) => [policies.limits.length, leftOut.size, keeps.size]);
  const [whole, none] = [
    [264, 0, 0],
    [0, 11, 11],
  ];
  expect(sizes).toEqual([...Array.from({ length: 9 }, () => whole), none, none, whole]);
});
