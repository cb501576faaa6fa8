import { describe, expect, it } from "vitest";
import { snapshot, table } from "../../../../test/support/route-table.ts";
import type { ProxyFacts } from "../../snapshot-server/proxy-registry.ts";
import type { AppPod } from "../../translate/app-pods.ts";
import type { AppPlan } from "../../translate/plan-app.ts";
import { type Issue, nextIssue } from "./issue.ts";

const routes = table([], {});
const plan = (digests: Record<string, string>): AppPlan => ({
  wished: routes,
  subsets: Object.keys(digests),
  rules: new Map(Object.entries(digests).map(([subset, digest]) => [subset, { ...snapshot(routes, { subset }), digest }])),
  digest: "",
  waits: [],
});
const pods = [
  { namespace: "n", name: "a", subset: "", proxy: "own" },
  { namespace: "n", name: "c", subset: "canary", proxy: "own" },
] as AppPod[];
const facts = (digest: string | undefined, version: number): ProxyFacts => ({
  connected: true,
  enforced: digest === undefined ? undefined : snapshot(routes, { digest, version }),
  outstanding: undefined,
  inDoubt: [],
  unresolved: false,
  version,
  problems: [],
  leader: false,
  lock: null,
});
const issue = (before: Issue | undefined, status: number, digests: Record<string, string>, known: Record<string, ProxyFacts>) =>
  nextIssue(before, status, plan(digests), pods, { facts: (pod) => known[pod] });

describe("nextIssue", () => {
  it("gives every subset with a proxy a version at first", () => {
    const first = issue(undefined, 0, { "": "d1", canary: "c1" }, { "n/a": facts(undefined, 0), "n/c": facts(undefined, 0) });
    expect(first).toMatchObject({ version: 2 });
    expect([...first.subsets]).toEqual([
      ["", { version: 1, digest: "d1" }],
      ["canary", { version: 2, digest: "c1" }],
    ]);
  });
  it("changes nothing when a manager restarts and the proxies enforce what is wished", () => {
    const known = { "n/a": facts("d1", 4), "n/c": facts("c1", 5) };
    const again = issue(undefined, 5, { "": "d1", canary: "c1" }, known);
    expect(again.version).toBe(5);
    expect(again.subsets.get("")).toEqual({ version: 4, digest: "d1" });
  });
  it("gives no version to rules that nobody is there to take", () => {
    const before = issue(undefined, 5, { "": "d-fenced", canary: "c1" }, { "n/c": facts("c1", 5) });
    expect(before.version).toBe(5);
    expect(before.subsets.has("")).toBe(false);
  });
  it("changes only the subset whose rules changed", () => {
    const known = { "n/a": facts("d1", 4), "n/c": facts("c1", 5) };
    const before = issue(undefined, 5, { "": "d1", canary: "c1" }, known);
    const next = issue(before, 5, { "": "d2", canary: "c1" }, known);
    expect([...next.subsets]).toEqual([
      ["", { version: 6, digest: "d2" }],
      ["canary", { version: 5, digest: "c1" }],
    ]);
  });
  it("uses no version again that a proxy is above: it would be refused as stale", () => {
    const known = { "n/a": { ...facts("d1", 4), outstanding: snapshot(routes, { digest: "d2", version: 6 }) } };
    const next = issue(undefined, 6, { "": "d1" }, known);
    expect(next.subsets.get("")).toEqual({ version: 7, digest: "d1" });
    const moved = issue(undefined, 6, { "": "d1" }, { "n/a": facts("c1", 6) });
    expect(moved.subsets.get("")).toEqual({ version: 7, digest: "d1" });
  });
  it("goes above what a proxy has heard of from a manager whose status write was lost", () => {
    expect(issue(undefined, 5, { "": "d2" }, { "n/a": facts("d1", 9) }).version).toBe(10);
  });
});
