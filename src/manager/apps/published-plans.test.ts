import { expect, it } from "vitest";
import { modelApp } from "../../../test/support/model-app.ts";
import { createPublishedPlans } from "./published-plans.ts";

const APP = { namespace: "shop", name: "app" };

it("tells of a plan when its owners or who is waited for have changed, and when it is gone, and then no more", () => {
  const plans = createPublishedPlans();
  const told: string[] = [];
  const end = plans.onChange(({ name }) => told.push(name));
  const changes = (publish: () => void) => {
    const before = told.length;
    publish();
    return told.length - before;
  };
  const model = modelApp(["prod", "mover"], {});
  model.pod("d1", "").pod("c", "canary").settle();
  const publish = () => plans.set(APP, model.plan());
  expect([changes(publish), changes(publish)]).toEqual([1, 0]);
  model.wish({ canary: ["mover"] }).reconcile();
  expect([changes(publish), changes(publish)]).toEqual([1, 0]);
  model.bare("b"); // it may write what moves, too
  expect(changes(publish)).toBe(1);
  expect([changes(() => plans.forget(APP)), changes(() => plans.forget(APP))]).toEqual([1, 0]);
  expect(plans.get(APP)).toBeUndefined();
  end();
  expect(changes(publish)).toBe(0);
});

it("tells of a plan when pods are waited for inside another cluster, though no fence has changed", () => {
  const plans = createPublishedPlans();
  const told: string[] = [];
  plans.onChange(({ name }) => told.push(name));
  const plan = modelApp(["prod"], {}).plan();
  const wait = { podName: "p", subset: "canary", cause: "holds" as const, namespaces: ["prod"], to: [""] };
  const publish = (...waits: (typeof wait)[]) => plans.set(APP, { ...plan, clusterTableWaits: new Map([["eu-1", waits]]) });
  publish(wait);
  publish({ ...wait, namespaces: ["team"] }); // one other namespace would change a fence
  expect(told.length).toBe(1);
  publish({ ...wait, subset: "v2" });
  expect(told.length).toBe(2);
});
