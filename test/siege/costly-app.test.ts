import { expect, test } from "vitest";
import { validateVirtualApp } from "../../src/api/virtual-app.ts";
import { deepExpressions, largeSelectors } from "./costly-app.ts";

const isValid = (spec: object) =>
  validateVirtualApp({
    apiVersion: "ctrlmesh.kruise.io/v1alpha1",
    kind: "VirtualApp",
    metadata: { namespace: "tenant", name: "costly" },
    spec,
  }).ok;

test("the costly apps are ones that a tenant may create, in every variant", () => {
  for (let variant = 0; variant < 40; variant++) {
    expect(isValid(largeSelectors(variant))).toBe(true);
    // The even variants are those of H2, which a schema may refuse by now.
    if (variant % 2 === 1) expect(isValid(deepExpressions(variant))).toBe(true);
  }
});
