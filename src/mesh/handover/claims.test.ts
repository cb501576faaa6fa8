import { describe, expect, it } from "vitest";
import { appPod, proxyFacts } from "../../../test/support/pod-facts.ts";
import { subset, table } from "../../../test/support/route-table.ts";
import { NO_CALLER_POLICY, type Snapshot } from "../ownership/snapshot.ts";
import { goneClaims, podClaims } from "./claims.ts";

const APP = { namespace: "shop", name: "app" };
const routes = table([subset("canary")], { pilot: [0] });
const snapshot: Snapshot = {
  app: APP,
  version: 1,
  digest: "d",
  subset: "canary",
  podNamespace: "shop",
  lockName: "",
  callers: NO_CALLER_POLICY,
  table: routes,
};
const pod = appPod("p", "canary", { running: false, ended: true, ready: false, terminating: true });
const facts = proxyFacts({ connected: false, acknowledged: snapshot });

it("a pod whose operator never started, and whose proxy may have routes of an earlier manager, claims everything as unstarted", () => {
  const unstarted = appPod("p", "canary", { ready: false, unstarted: true });
  const everything = { kind: "everything", podName: "p", subset: undefined };
  expect(podClaims(APP, [unstarted], () => undefined)).toEqual([{ ...everything, isUnstarted: true }]);
  expect(podClaims(APP, [{ ...unstarted, running: false }], () => undefined)).toEqual([]);
  expect(goneClaims(APP, [{ pod: unstarted, facts: undefined }])).toEqual([{ ...everything, isGone: true, isUnstarted: true }]);
});

describe("the claims of a removed pod", () => {
  it("are the last facts about its proxy, independent of its last status", () => {
    expect(podClaims(APP, [pod], () => facts)).toEqual([]);
    expect(goneClaims(APP, [{ pod, facts }])).toEqual([
      { kind: "table", podName: "p", subset: "canary", table: routes, enforced: true, isGone: true },
    ]);
    expect(goneClaims(APP, [{ pod, facts: { ...facts, acknowledged: undefined } }])).toEqual([]);
  });
  it("are everything if its proxy had not registered, or it had no proxy", () => {
    const everything = { kind: "everything", podName: "p", isGone: true };
    expect(goneClaims(APP, [{ pod, facts: undefined }])).toEqual([{ ...everything, subset: undefined }]);
    expect(goneClaims(APP, [{ pod: { ...pod, proxy: "none" }, facts: undefined }])).toEqual([{ ...everything, subset: "" }]);
  });
  it("are everything, without a pod and a subset, while recent removals are not known", () => {
    expect(goneClaims(APP, ["unknown"])).toEqual([{ kind: "everything", podName: "", subset: undefined, isGone: true }]);
  });
});
