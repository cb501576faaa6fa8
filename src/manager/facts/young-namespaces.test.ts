import { expect, it } from "vitest";
import { youngAt } from "./young-namespaces.ts";

const born = Date.parse("2026-01-01T00:00:00Z");
const namespaces = {
  get: (name: string) => (name === "fresh" ? { metadata: { name, creationTimestamp: "2026-01-01T00:00:00Z" } } : undefined),
};

it("a namespace is young for ten seconds, also if the clock is behind", () => {
  expect(youngAt(namespaces, born + 9_999)("fresh")).toBe(true);
  expect(youngAt(namespaces, born - 5_000)("fresh")).toBe(true);
  expect(youngAt(namespaces, born + 10_000)("fresh")).toBe(false);
});
it("an unknown namespace is not young, and neither is the cluster scope", () => {
  expect(youngAt(namespaces, born)("other")).toBe(false);
  expect(youngAt(namespaces, born)("")).toBe(false);
});
