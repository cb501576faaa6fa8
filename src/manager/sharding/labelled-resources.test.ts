import { expect, it } from "vitest";
import { sampleShardingConfig, sampleShardingRoot } from "../../../test/support/sharding-config.ts";
import { resourceName } from "../../kube/client/resource.ts";
import { labelledResources } from "./labelled-resources.ts";

const names = (config: unknown) => labelledResources(config).map(resourceName);

it("labelObjects labels namespaces and what the object names", () => {
  expect(names(sampleShardingConfig({ labelObjects: true }))).toEqual(["namespaces", "pods", "services"]);
  expect(names(sampleShardingRoot({}, { labelObjects: true }))).toEqual(["namespaces", "pods", "services"]);
});

it("without labelObjects nothing is labelled, nor by what cannot be read", () => {
  expect(names(sampleShardingConfig())).toEqual([]);
  expect(names({ spec: { labelObjects: true, limits: "all" } })).toEqual(["namespaces"]);
  expect(names(undefined)).toEqual([]);
});
