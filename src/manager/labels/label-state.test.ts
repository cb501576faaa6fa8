import { expect, it } from "vitest";
import { createLabelStates, judgeLabels, type LabelFacts } from "./label-state.ts";

const FACTS: LabelFacts = {
  total: 5,
  labelled: 5,
  policy: { isInForce: true },
  isListed: true,
  optedOut: undefined,
  failure: undefined,
};

it.each<[string, Partial<LabelFacts>, string]>([
  ["Complete", {}, "all 5 are labelled"],
  ["Listing", { isListed: false, total: 0, labelled: 0 }, "the objects are being listed"],
  ["Labelling", { labelled: 4 }, "4 of 5 are labelled"],
  ["Failing", { labelled: 4, failure: "patching a/b: refused" }, "4 of 5 are labelled: patching a/b: refused"],
  ["Failing", { policy: { isInForce: false, failure: "refused" } }, "5 of 5 are labelled; the policy is missing: refused"],
  ["NoPolicy", { policy: "why" }, "all 5 are labelled; why, so new objects get their labels a moment later"],
  ["OptedOut", { optedOut: "out" }, "namespace out is opted out"],
  ["NoPolicy", { policy: { isInForce: false } }, "all 5 are labelled; the policy is being written"],
])("a resource is %s with %j", (reason, facts, message) => {
  const state = judgeLabels({ ...FACTS, ...facts });
  expect(state.reason).toBe(reason);
  expect(state.message).toContain(message);
});

it("a change of the state is told, an equal one is not", () => {
  const family = { namespace: "a", name: "family" };
  const states = createLabelStates(new Map([["pods", ["a/family"]]]));
  const told: string[] = [];
  states.onChange(({ resource }) => told.push(resource));
  const of = { group: "", resource: "pods" };
  states.set(of, judgeLabels(FACTS));
  states.set(of, judgeLabels(FACTS));
  expect(told).toEqual(["pods"]);
  states.set(of, undefined);
  expect(told).toEqual(["pods", "pods"]);
  expect(states.get(of, family)).toBeUndefined();
});

it("a family that the chart does not name is told so, whatever the state is for others", () => {
  const states = createLabelStates(new Map([["pods", ["a/family"]]]));
  states.set({ group: "", resource: "pods" }, judgeLabels(FACTS));
  expect(states.get({ group: "", resource: "pods" }, { namespace: "a", name: "family" })?.reason).toBe("Complete");
  expect(states.get({ group: "", resource: "pods" }, { namespace: "a", name: "stranger" })).toMatchObject({
    reason: "NotAllowed",
    message: expect.stringContaining("add a/stranger to the families"),
  });
});
