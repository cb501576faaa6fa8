import { describe, expect, it } from "vitest";
import { proxyFacts } from "../../../test/support/pod-facts.ts";
import { snapshot, table } from "../../../test/support/route-table.ts";
import type { AppPod } from "./app-pod.ts";
import { type Issue, nextIssue } from "./issue.ts";
import type { AppPlan } from "./plan-app.ts";
import type { ProxyFacts } from "./proxy-facts.ts";

const routes = table([], {});
const plan = (digests: Record<string, string>): AppPlan => ({
  desired: routes,
  subsets: Object.keys(digests),
  rules: new Map(Object.entries(digests).map(([subset, digest]) => [subset, { ...snapshot(routes, { subset }), digest }])),
  rulesFor: ({ name, subset }) => ({ ...snapshot(routes, { subset }), digest: digests[name] ?? digests[subset] ?? "" }),
  digest: "",
  waits: [],
  kept: 0,
  needsConfirmation: false,
  isDissolving: false,
});
const pods = [
  { namespace: "n", name: "a", subset: "", proxy: "own" },
  { namespace: "n", name: "c", subset: "canary", proxy: "own" },
] as AppPod[];
const facts = (digest: string | undefined, version: number) =>
  proxyFacts({ acknowledged: digest === undefined ? undefined : snapshot(routes, { digest, version }), version });
const issue = (before: Issue | undefined, status: number, digests: Record<string, string>, known: Record<string, ProxyFacts>) =>
  nextIssue(before, status, plan(digests), pods, (pod) => known[pod]);

const versions = ({ snapshots }: Issue) => Object.fromEntries([...snapshots].map(([digest, { version }]) => [digest, version]));

describe("nextIssue", () => {
  it("gives every subset with a proxy a first version", () => {
    const first = issue(undefined, 0, { "": "d1", canary: "c1" }, { "n/a": facts(undefined, 0), "n/c": facts(undefined, 0) });
    expect(first).toMatchObject({ version: 2 });
    expect(versions(first)).toEqual({ d1: 1, c1: 2 });
  });
  it("changes nothing when a manager restarts and the proxies enforce what is desired", () => {
    const known = { "n/a": facts("d1", 4), "n/c": facts("c1", 5) };
    const again = issue(undefined, 5, { "": "d1", canary: "c1" }, known);
    expect(again.version).toBe(5);
    expect(versions(again)).toEqual({ d1: 4, c1: 5 });
  });
  it("gives no version to rules that no proxy needs", () => {
    const before = issue(undefined, 5, { "": "d-fenced", canary: "c1" }, { "n/c": facts("c1", 5) });
    expect(before.version).toBe(5);
    expect(versions(before)).toEqual({ c1: 5 });
  });
  it("changes only the subset whose rules changed", () => {
    const known = { "n/a": facts("d1", 4), "n/c": facts("c1", 5) };
    const before = issue(undefined, 5, { "": "d1", canary: "c1" }, known);
    const next = issue(before, 5, { "": "d2", canary: "c1" }, known);
    expect(versions(next)).toEqual({ d2: 6, c1: 5 });
    expect(next.snapshots.get("c1")).toBe(before.snapshots.get("c1"));
  });
  it("does not reuse a version if a proxy knows a higher one, because the proxy would refuse it", () => {
    const known = { "n/a": { ...facts("d1", 4), outstanding: snapshot(routes, { digest: "d2", version: 6 }) } };
    const next = issue(undefined, 6, { "": "d1" }, known);
    expect(versions(next)).toEqual({ d1: 7 });
    const moved = issue(undefined, 6, { "": "d1" }, { "n/a": facts("c1", 6) });
    expect(versions(moved)).toEqual({ d1: 7 });
  });
  it("exceeds the version that a proxy got from a manager whose status write was lost", () => {
    expect(issue(undefined, 5, { "": "d2" }, { "n/a": facts("d1", 9) }).version).toBe(10);
  });
  it.each([2 ** 48, Number.MAX_SAFE_INTEGER, 2 ** 64])(
    "ignores the version %d of a proxy, which no manager can have given",
    (impossible) => {
      const lying = { "n/a": facts("d1", impossible), "n/c": facts("c1", 5) };
      const first = issue(undefined, 5, { "": "d1", canary: "c2" }, lying);
      expect([first.version, versions(first)]).toEqual([7, { d1: 6, c2: 7 }]);
      expect(issue(first, 7, { "": "d1", canary: "c2" }, lying)).toEqual(first); // a second call gives no new version
      const inDoubt = { "n/a": { ...facts("d1", 4), inDoubt: [snapshot(routes, { digest: "x", version: impossible })] } };
      expect(issue(undefined, 5, { "": "d2" }, inDoubt).version).toBe(6);
    },
  );
  it("exceeds the version that a proxy knows from before the app was created again without its status", () => {
    expect(issue(undefined, 0, { "": "d2" }, { "n/a": facts("d1", 2 ** 31) }).version).toBe(2 ** 31 + 1);
  });
  it("gives pods of a subset that retain different namespaces different versions, and equal pods the same version", () => {
    const three = [
      { ...pods[0], name: "a" },
      { ...pods[0], name: "b" },
      { ...pods[0], name: "d" },
    ] as AppPod[];
    const known = { "n/a": facts("d1", 4), "n/b": facts("d1", 4), "n/d": facts(undefined, 0) };
    const next = nextIssue(
      undefined,
      4,
      plan({ a: "d2-shown", b: "d2-shown", d: "d2" }),
      three,
      (pod) => known[pod as string as "n/a"],
    );
    expect(versions(next)).toEqual({ "d2-shown": 5, d2: 6 });
    expect(next.version).toBe(6);
  });
});
