import { describe, expect, it } from "vitest";
import { appOf } from "../../../test/support/source-apps.ts";
import { sampleVirtualApp } from "../../../test/support/virtual-app.ts";
import { formatProblem } from "../../api/problems.ts";
import type { Surroundings } from "../apps/app.ts";
import { judgeEdit } from "./virtual-app-edit.ts";

const NOTHING: Surroundings = { own: undefined, others: [] };
const judge = (before: unknown, after: unknown, around: Partial<Surroundings> = {}) => {
  const { problems, warnings } = judgeEdit(before, after, { ...NOTHING, ...around });
  return { problems: problems.map(formatProblem), warnings };
};
const subset = (name: string, ...routeRules: string[]) => ({ name, labels: { version: name }, routeRules });

const BAD = sampleVirtualApp({ subsets: [subset("v1", "canry"), subset("v2", "canary-eu"), subset("v2", "nothing")] });

describe("judgeEdit at creation", () => {
  it("has no problems and warnings for a valid object", () => {
    expect(judge(undefined, sampleVirtualApp())).toEqual({ problems: [], warnings: [] });
  });

  it("reports all problems at once", () => {
    const { problems } = judge(undefined, BAD);
    expect(problems).toHaveLength(3);
    expect(problems.join("\n")).toContain('spec.subsets[0].routeRules[0]: "canry": no such subRule');
    expect(problems.join("\n")).toContain("spec.subsets[2].name");
  });

  it("warns of another app that may select the same pods, unless that app is being deleted", () => {
    const other = (name: string, selector: object, metadata: object = {}) =>
      appOf({ ...sampleVirtualApp({ selector }), metadata: { name, namespace: "ops", ...metadata } });
    const others = [
      other("rival", { matchLabels: { tier: "x" } }),
      other("apart", { matchLabels: { component: "else" } }),
      other("going", { matchLabels: { tier: "x" } }, { deletionTimestamp: "2026-01-01T00:00:00Z" }),
    ];
    const { warnings } = judge(undefined, sampleVirtualApp(), { others });
    expect(warnings).toEqual([expect.stringContaining("VirtualApp rival may select the same pods")]);
  });

  it("warns of an old spelling, and not of the new spelling", () => {
    const old = sampleVirtualApp({ configuration: { controller: { leaderElection: { lockName: "shop-lock" } } } });
    expect(judge(undefined, old).warnings).toEqual([
      "spec.configuration.controller.leaderElection.lockName is the old name of spec.configuration.controller.leaderElectionName",
    ]);
    const controller = { leaderElectionName: "shop-lock" };
    expect(judge(old, sampleVirtualApp({ configuration: { controller } })).warnings).toEqual([]);
  });
});

describe("judgeEdit at an update of an invalid object", () => {
  it("allows changes of metadata and finalizers and partial corrections, and warns of the remaining problems", () => {
    const labelled = { ...BAD, metadata: { name: "shop", namespace: "ops", labels: { a: "b" }, finalizers: [] } };
    expect(judge(BAD, labelled)).toMatchObject({ problems: [], warnings: { length: 3 } });
    const mended = sampleVirtualApp({ subsets: [subset("v2", "canary-eu"), subset("v2", "nothing")] });
    const { problems, warnings } = judge(BAD, mended);
    expect(problems).toEqual([]);
    expect(warnings).toHaveLength(2);
    expect(warnings[0]).toMatch(/^not corrected yet: spec\.subsets\[1\]/);
  });

  it("refuses new problems, and names only these", () => {
    const worse = sampleVirtualApp({ subsets: [subset("v1", "canry"), subset("v2", "canary-eu"), subset("v3", "other")] });
    expect(judge(BAD, worse).problems).toEqual([expect.stringContaining('"other": no such subRule')]);
    const again = sampleVirtualApp({ subsets: [subset("v1", "canry"), subset("v2", "canary-eu"), subset("v3", "canry")] });
    expect(judge(BAD, again).problems).toHaveLength(1); // the same mistake a second time
  });

  it("refuses an edit that makes a valid object invalid", () => {
    expect(judge(sampleVirtualApp(), BAD).problems).toHaveLength(3);
  });
});

describe("judgeEdit at an update of an immutable field", () => {
  const lock = (leaderElectionName: string) => ({ configuration: { controller: { leaderElectionName } } });

  it("reports the change together with the other problems", () => {
    const changed = sampleVirtualApp({
      selector: { matchLabels: { a: "b" } },
      ...lock("other"),
      subsets: [subset("v2", "canry")],
    });
    expect(judge(sampleVirtualApp(), changed).problems).toEqual([
      "spec.selector: cannot be changed: delete this VirtualApp, wait until it is deleted, and create it again",
      `spec.configuration.controller: the operator's lock "shop-lock" cannot be changed: delete this VirtualApp, wait until it is deleted, and create it again`,
      expect.stringContaining("no such subRule"),
    ]);
  });

  it("allows the first name of the lock, and another form of the same name", () => {
    expect(judge(sampleVirtualApp({ configuration: {} }), sampleVirtualApp()).problems).toEqual([]);
    const older = sampleVirtualApp({ configuration: { controller: { leaderElection: { lockName: "shop-lock" } } } });
    expect(judge(sampleVirtualApp(), older).problems).toEqual([]);
    expect(judge(older, sampleVirtualApp()).problems).toEqual([]);
  });
});

describe("judgeEdit at an edit of the rules", () => {
  const from = sampleVirtualApp();
  const reroute = (before: unknown, after: unknown) => judgeEdit(before, after, NOTHING).reroute;

  it("names the routes before and after, and whether pods restart", () => {
    const after = sampleVirtualApp({ subsets: [] });
    expect(reroute(from, after)).toMatchObject({ before: { rules: [{ subset: "v2" }] }, after: { rules: [] }, restarts: true });
    expect(reroute(from, sampleVirtualApp({ route: { onLoss: "InPlace" }, subsets: [] }))?.restarts).toBe(false);
  });

  it("names none for a new object, for another edit, and for one that pauses the app", () => {
    expect(reroute(undefined, from)).toBeUndefined();
    expect(reroute(from, sampleVirtualApp({ configuration: {} }))).toBeUndefined();
    expect(reroute(from, sampleVirtualApp({ route: { paused: true }, subsets: [] }))).toBeUndefined();
  });
});
