import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../kube/types.ts";
import { isOptedOut, missingLabels } from "./right-labels.ts";

const KEY = "ctrlmesh.kusionstack.io";
const CONFIG_MAPS = { group: "", resource: "configmaps" };
const NAMESPACES = { group: "", resource: "namespaces" };
const object = (labels: Readonly<Record<string, string>> = {}, namespace?: string): KubeObject => ({
  metadata: { name: "foo-01", ...(namespace === undefined ? {} : { namespace }), labels },
});

describe("the labels that an object lacks", () => {
  it("are those of its namespace, whatever was planted", () => {
    const right = { [`${KEY}/namespace`]: "test-mysql", [`${KEY}/shard-hash`]: "3" };
    expect(missingLabels(CONFIG_MAPS, object({}, "test-mysql"))).toEqual(right);
    expect(missingLabels(CONFIG_MAPS, object({ ...right, [`${KEY}/shard-hash`]: "4" }, "test-mysql"))).toEqual({
      [`${KEY}/shard-hash`]: "3",
    });
    expect(missingLabels(CONFIG_MAPS, object({ ...right, other: "x" }, "test-mysql"))).toBeUndefined();
  });

  it("are those of its own name, and control, for a namespace", () => {
    expect(missingLabels(NAMESPACES, object())).toEqual({
      [`${KEY}/namespace`]: "foo-01",
      [`${KEY}/shard-hash`]: "18",
      [`${KEY}/control`]: "true",
    });
  });
});

it("a namespace is opted out by any other value of control than true", () => {
  expect(["true", "false", ""].map((value) => isOptedOut(object({ [`${KEY}/control`]: value })))).toEqual([false, true, true]);
  expect(isOptedOut(object())).toBe(false);
});
