import { describe, expect, it } from "vitest";
import { VIRTUAL_APPS } from "../../api/resources.ts";
import type { App } from "../apps/app.ts";
import type { OwnershipPlan } from "../apps/published-plans.ts";
import { decisionKey, placementObjects } from "./placement-objects.ts";

const APP = {
  ref: { kind: "VirtualApp", namespace: "fleet", name: "shop" },
  object: { metadata: { namespace: "fleet", name: "shop", uid: "uid-shop" } },
} as Pick<App, "ref" | "object">;

function planOf(owners: Readonly<Record<string, string>>, fenced: readonly string[] = []): Pick<OwnershipPlan, "rules"> {
  const clusters = Object.entries(owners).map(([name, owner]) => ({
    name,
    owner,
    servers: [`${name}.example:443`],
    drainMs: 1_000,
    ...(fenced.includes(name) && { isFenced: true }),
  }));
  return { rules: new Map([...new Set(["", ...Object.values(owners)])].map((subset) => [subset, { clusters }])) } as never;
}
const objects = (owners: Readonly<Record<string, string>>, hasProfile = (_: string) => true, fenced: readonly string[] = []) =>
  placementObjects(APP, VIRTUAL_APPS, planOf(owners, fenced), hasProfile);
const shown = (...args: Parameters<typeof objects>) =>
  objects(...args).map(({ metadata, decisions }) => [
    metadata.name,
    decisions.map(({ clusterProfileRef }) => clusterProfileRef.name).join(" "),
  ]);

describe("the PlacementDecisions of an app", () => {
  it("have for each subset the clusters that it owns, in the order of their names", () => {
    expect(shown({ us: "", eu: "blue", asia: "" })).toEqual([
      ["shop.default-0", "asia us"],
      ["shop.blue-0", "eu"],
    ]);
    expect(shown({})).toEqual([]);
  });

  it("have the labels of the API, the app's label, and the app's object as their controller", () => {
    expect(objects({ eu: "blue" })).toEqual([
      {
        apiVersion: "multicluster.x-k8s.io/v1alpha1",
        kind: "PlacementDecision",
        metadata: {
          namespace: "fleet",
          name: "shop.blue-0",
          labels: {
            "ctrlmesh.kruise.io/app": "shop",
            "multicluster.x-k8s.io/decision-key": "shop.blue",
            "multicluster.x-k8s.io/decision-index": "0",
          },
          ownerReferences: [
            { apiVersion: "ctrlmesh.kruise.io/v1alpha1", kind: "VirtualApp", name: "shop", uid: "uid-shop", controller: true },
          ],
        },
        schedulerName: "ctrlmesh-manager",
        decisions: [{ clusterProfileRef: { name: "eu" } }],
      },
    ]);
  });

  it("have no clusters without a ClusterProfile, which they may not name", () => {
    expect(shown({ us: "", eu: "" }, (name) => name === "eu")).toEqual([["shop.default-0", "eu"]]);
  });

  it("have a cluster that moves under its next owner, so that it never disappears", () => {
    expect(shown({ eu: "blue" }, () => true, ["eu"])).toEqual(shown({ eu: "blue" }));
  });

  it("have at most 100 clusters each, with one key and numbers from 0", () => {
    const owners = Object.fromEntries(Array.from({ length: 201 }, (_, at) => [`c-${at}`, "blue"]));
    const slices = objects(owners);
    expect(slices.map(({ decisions }) => decisions.length)).toEqual([100, 100, 1]);
    expect(new Set(slices.map(({ metadata }) => metadata.labels?.["multicluster.x-k8s.io/decision-key"]))).toEqual(
      new Set(["shop.blue"]),
    );
    expect(slices.map(({ metadata }) => [metadata.name, metadata.labels?.["multicluster.x-k8s.io/decision-index"]])).toEqual([
      ["shop.blue-0", "0"],
      ["shop.blue-1", "1"],
      ["shop.blue-2", "2"],
    ]);
  });
});

describe("the key of a decision", () => {
  it("fits into a label and differs for each app and subset, however long their names are", () => {
    const long = "a".repeat(63);
    const keys = [decisionKey(long, "b"), decisionKey(long, "c"), decisionKey(`${"a".repeat(52)}-x`, "b".repeat(20))];
    for (const key of keys) expect(key).toMatch(/^(?=.{1,63}$)[a-z0-9]+([-.][a-z0-9]+)*$/);
    expect(new Set(keys).size).toBe(keys.length);
  });
});
