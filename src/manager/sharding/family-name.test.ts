import { expect, it } from "vitest";
import { familyNameOf } from "./family-name.ts";

const owner = { apiVersion: "ctrlmesh.kusionstack.io/v1alpha1", kind: "ShardingConfig", name: "shop", controller: true };
const lock = { controller: { leaderElectionName: "lock" } };

it.each<[string, object, object, string]>([
  ["a child after its root", { name: "shop-1-normal", ownerReferences: [owner] }, lock, "shop"],
  ["a root after itself, whatever its lock is", { name: "shop" }, { root: {}, ...lock }, "shop"],
  ["a hand-written config after its lock", { name: "a" }, lock, "lock"],
  ["a config without a lock after itself", { name: "a" }, {}, "a"],
  ["a config with an empty lock after itself", { name: "a" }, { controller: { leaderElectionName: "" } }, "a"],
  [
    "a config that another kind owns after its lock",
    { name: "a", ownerReferences: [{ ...owner, kind: "Deployment" }] },
    lock,
    "lock",
  ],
  ["a config of any shape after itself", { name: "a" }, { controller: 7 }, "a"],
])("the family of %s is named", (_, metadata, spec, name) => {
  expect(familyNameOf({ metadata, spec } as never)).toBe(name);
});
