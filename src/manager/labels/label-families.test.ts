import { expect, it } from "vitest";
import { labelFamilies, mayLabel, whyNotLabelled } from "./label-families.ts";

const FAMILY = { namespace: "foo-system", name: "foo-operator" };
const STRANGER = { namespace: "tenant", name: "foo-operator" };
const of = (resource: string, group = "") => ({ group, resource });
const read = (text: string) => labelFamilies.parse(text);

it("a tenant's family gets no labels because an administrator has allowed them for another one", () => {
  const families = read('{"configmaps":["foo-system/foo-operator"],"foos.demo.ctrlmesh.io":["bar/bar"]}');
  expect(mayLabel(families, FAMILY, of("configmaps"))).toBe(true);
  expect(mayLabel(families, STRANGER, of("configmaps"))).toBe(false);
  expect(mayLabel(families, FAMILY, of("foos", "demo.ctrlmesh.io"))).toBe(false);
  expect(mayLabel(families, FAMILY, of("secrets"))).toBe(false);
  expect(mayLabel(families, FAMILY, of("constructor"))).toBe(false);
});

it("namespaces are labelled for a family that has an entry, and for no other", () => {
  const families = read('{"configmaps":["foo-system/foo-operator"]}');
  expect(mayLabel(families, FAMILY, of("namespaces"))).toBe(true);
  expect(mayLabel(families, STRANGER, of("namespaces"))).toBe(false);
});

it("a star is for every family, and nothing is for none", () => {
  expect(mayLabel(read('{"configmaps":["*"]}'), STRANGER, of("configmaps"))).toBe(true);
  expect(mayLabel(read('{"configmaps":["*"]}'), STRANGER, of("secrets"))).toBe(false);
  expect(mayLabel(read(""), FAMILY, of("namespaces"))).toBe(false);
});

it.each(["{", "[]", '{"configmaps":"*"}', '{"configmaps":["foo-operator"]}'])("%s is refused", (text) => {
  expect(labelFamilies.safeParse(text).success).toBe(false);
});

it("the remedy names the family and the entry", () => {
  expect(whyNotLabelled(STRANGER, of("foos", "x.io"))).toContain(
    'add tenant/foo-operator to the families of the entry { group: "x.io", resource: foos }',
  );
});
