import { describe, expect, it } from "vitest";
import { appAnnotations, stripsManagedFields } from "./annotations.ts";

const found = (annotations: Readonly<Record<string, unknown>>) => [...appAnnotations({ annotations })];

describe("the annotations of a VirtualApp", () => {
  it.each([
    {},
    { "ctrlmesh.kruise.io/intercept": "env", "ctrlmesh.kruise.io/host-aliases": "true" },
    { "ctrlmesh.kruise.io/intercept": "iptables", "ctrlmesh.kruise.io/strip-managed-fields": "false", other: "x" },
  ])("may be %o", (annotations) => {
    expect(found(annotations)).toEqual([]);
  });
  it("are refused one by one, with the allowed values and the nearest one", () => {
    const annotations = {
      "ctrlmesh.kruise.io/intercept": "kubeconfg",
      "ctrlmesh.kruise.io/host-aliases": "yes",
      "ctrlmesh.kruise.io/strip-managed-fields": "1",
    };
    expect(found(annotations).map(({ path, message }) => [path[1], message])).toEqual([
      ["ctrlmesh.kruise.io/strip-managed-fields", 'must be "true" or "false"'],
      ["ctrlmesh.kruise.io/intercept", 'must be one of "env", "kubeconfig", "iptables"; did you mean "kubeconfig"?'],
      ["ctrlmesh.kruise.io/host-aliases", 'must be "true" or "false"'],
    ]);
  });
  it("strip managedFields only if the value is true", () => {
    expect(stripsManagedFields({ annotations: { "ctrlmesh.kruise.io/strip-managed-fields": "true" } })).toBe(true);
    expect(stripsManagedFields({ annotations: { "ctrlmesh.kruise.io/strip-managed-fields": "false" } })).toBe(false);
    expect(stripsManagedFields({})).toBe(false);
  });
});
