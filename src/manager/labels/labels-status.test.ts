import { expect, it } from "vitest";
import type { AppStatus } from "../../api/app-status.ts";
import type { GroupResource } from "../../kube/types.ts";
import type { LabelReason } from "./label-state.ts";
import { completeResources, labelsStatus } from "./labels-status.ts";

const resources = ["namespaces", "pods", "secrets"].map((resource) => ({ group: "", resource }));
const known =
  (reasons: Readonly<Record<string, LabelReason>>) =>
  ({ resource }: GroupResource) => {
    const reason = reasons[resource];
    return reason && { total: 3, labelled: 2, reason, message: `it is ${reason}` };
  };

it("the status sums the resources, and names the worst and the complete ones", () => {
  const states = known({ namespaces: "Complete", pods: "Complete", secrets: "Settling" });
  expect(labelsStatus(resources, states, undefined)).toEqual({
    ...{ total: 9, labelled: 6, complete: ["pods"], waitingFor: "Settling", message: "secrets: it is Settling" },
  });
  const worse = known({ namespaces: "Labelling", pods: "Forbidden", secrets: "Settling" });
  expect(labelsStatus(resources, worse, undefined)).toMatchObject({
    ...{ complete: [], waitingFor: "Forbidden", message: "pods: it is Forbidden (and 2 more of 3 resources)" },
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

it("the complete resources are those of the status, also of a leader that knows nothing yet", () => {
  const pods = [{ group: "", resource: "pods" }];
  expect(
    completeResources(resources, known({ namespaces: "Complete", pods: "Complete", secrets: "Failing" }), undefined),
  ).toEqual(pods);
  const before = { labels: { total: 9, labelled: 9, complete: ["pods"] } } as AppStatus;
  expect(completeResources(resources, known({}), before)).toEqual(pods);
  expect(completeResources(resources, known({ namespaces: "Complete", pods: "Labelling", secrets: "Failing" }), before)).toEqual(
    [],
  );
  expect(completeResources([], known({}), before)).toEqual([]);
});

it("more resources than the status has room for are not relied on", () => {
  const many = Array.from({ length: 300 }, (_, index) => ({ group: "x.io", resource: `kind${index}` }));
  const complete = () => ({ total: 1, labelled: 1, reason: "Complete" as const, message: "" });
  expect(labelsStatus(many, complete, undefined)?.complete).toHaveLength(256);
  expect(completeResources(many, complete, undefined)).toHaveLength(256);
});
