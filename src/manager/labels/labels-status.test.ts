import { expect, it } from "vitest";
import type { GroupResource } from "../../kube/types.ts";
import type { LabelReason } from "./label-state.ts";
import { labelsStatus } from "./labels-status.ts";

const resources = ["namespaces", "pods", "secrets"].map((resource) => ({ group: "", resource }));
const known =
  (reasons: Readonly<Record<string, LabelReason>>) =>
  ({ resource }: GroupResource) => {
    const reason = reasons[resource];
    return reason && { total: 3, labelled: 2, reason, message: `it is ${reason}` };
  };

it("the status sums the resources, and names the worst and the complete ones", () => {
  const states = known({ namespaces: "Complete", pods: "Complete", secrets: "OptedOut" });
  expect(labelsStatus(resources, states, undefined)).toEqual({
    total: 9,
    labelled: 6,
    complete: ["pods"],
    waitingFor: "OptedOut",
    message: "secrets: it is OptedOut",
  });
  const worse = known({ namespaces: "Labelling", pods: "Forbidden", secrets: "OptedOut" });
  expect(labelsStatus(resources, worse, undefined)).toMatchObject({
    complete: [],
    waitingFor: "Forbidden",
    message: "pods: it is Forbidden (and 2 more of 3 resources)",
  });
  const all = known({ namespaces: "Complete", pods: "Complete", secrets: "ClusterScoped" });
  expect(labelsStatus(resources, all, undefined)).toEqual({ total: 9, labelled: 6, complete: ["pods"] });
});

it("a new leader keeps the status until it knows all resources", () => {
  const before = { total: 9, labelled: 9, complete: ["pods"] };
  expect(labelsStatus(resources, known({ pods: "Complete" }), before)).toBe(before);
  expect(labelsStatus(resources, known({}), undefined)).toMatchObject({ complete: [], waitingFor: "Listing" });
  expect(labelsStatus([], known({}), before)).toBeUndefined();
});

it("a new leader keeps the status while it lists the complete resources, and no longer", () => {
  const before = { total: 9, labelled: 9, complete: ["namespaces", "pods"] };
  const both = resources.slice(0, 2);
  expect(labelsStatus(both, known({ namespaces: "Complete", pods: "Listing" }), before)).toBe(before);
  expect(labelsStatus(both, known({ namespaces: "Complete", pods: "Labelling" }), before)).toMatchObject({ complete: [] });
  const added = known({ namespaces: "Complete", pods: "Complete", secrets: "Listing" });
  expect(labelsStatus(resources, added, before)).toMatchObject({ complete: ["pods"], waitingFor: "Listing" });
});

it("a new leader keeps the status while it lists the namespaces, which are never among the complete resources", () => {
  const before = { total: 9, labelled: 9, complete: ["pods", "secrets"] };
  const listing = { namespaces: "Listing", pods: "Complete" } as const;
  expect(labelsStatus(resources, known({ ...listing, secrets: "Complete" }), before)).toBe(before);
  expect(labelsStatus(resources, known({ ...listing, secrets: "Listing" }), before)).toBe(before);
  const one = { ...before, complete: ["pods"] };
  expect(labelsStatus(resources, known({ ...listing, secrets: "Listing" }), one)).toMatchObject({ waitingFor: "Listing" });
  expect(labelsStatus(resources, known({ ...listing, secrets: "Complete" }), undefined)).toMatchObject({ waitingFor: "Listing" });
});

it("the status names at most as many complete resources as it has room for", () => {
  const many = Array.from({ length: 300 }, (_, index) => ({ group: "x.io", resource: `kind${index}` }));
  const complete = () => ({ total: 1, labelled: 1, reason: "Complete" as const, message: "" });
  expect(labelsStatus(many, complete, undefined)?.complete).toHaveLength(256);
});
