import { expect, it } from "vitest";
import { appPod } from "../../../test/support/pod-facts.ts";
import { createStatusWorld, type StatusWorld } from "../../../test/support/status-world.ts";
import type { AppStatus } from "../../api/app-status.ts";
import { conditionOf } from "./facts.ts";

const undivided = { selector: { matchLabels: { component: "app" } } };

/** An app that divides nothing, whose pods enforce what they were sent. */
function settledWorld(...pods: readonly string[]) {
  const world = createStatusWorld(
    undivided,
    ["prod"],
    pods.map((name) => appPod(name)),
  );
  world.settle();
  return world;
}

const freeze = (world: StatusWorld) => {
  world.spec = { ...undivided, route: { frozen: { prod: "restore" } } };
};
const converged = (status: AppStatus) => conditionOf(status, "Converged");

it("a freeze has converged once its only pod enforces it", () => {
  const world = settledWorld("a0");
  freeze(world);
  expect(converged(world.reconcile())).toMatchObject({ status: "False", reason: "ProxiesBehind" });
  expect(converged(world.settle())).toMatchObject({ status: "True", reason: "InSync" });
});

it("a freeze has not converged while a write is under way in the namespace, and the message says so", () => {
  const world = settledWorld("a0");
  freeze(world);
  world.reports.set("a0", { backlog: { heldNamespaces: 0, drainingWrites: 1 } });
  expect(converged(world.reconcile())?.message).toMatch(/; pod a0 has 1 write under way that its new route refuses$/);
});

it("a freeze has not converged while a pod without a proxy runs, although no other subset owns anything", () => {
  const world = settledWorld("a0");
  freeze(world);
  world.pods.set("bare", appPod("bare", "", { proxy: "none" }));
  expect(converged(world.settle())).toMatchObject({
    status: "False",
    reason: "PodsWithoutProxy",
    message: "pod bare may write in frozen namespaces, since it carries no proxy: restart it to have it injected",
  });
});

it("a freeze has not converged while a proxy of an earlier version acknowledges it and does not know it", () => {
  const world = settledWorld("a0");
  freeze(world);
  world.reports.set("a0", { capabilities: new Set(["type:routes"]) });
  expect(converged(world.settle())).toMatchObject({
    status: "False",
    reason: "PodsWithoutProxy",
    message:
      "pod a0 may write in frozen namespaces, since it carries no proxy that knows freezes: restart it to have it injected",
  });
});

it("a freeze has not converged while a terminating pod without a connection may write by earlier routes", () => {
  const world = settledWorld("a0", "a1");
  world.pods.set("a1", appPod("a1", "", { terminating: true }));
  world.reports.set("a1", { connected: false });
  freeze(world);
  world.reconcile();
  world.ack("a0");
  expect(converged(world.reconcile())).toMatchObject({
    status: "False",
    reason: "ProxiesBehind",
    message: "pod a1 may write in frozen namespaces: its proxy is behind",
  });
  world.pods.delete("a1");
  expect(converged(world.reconcile())?.status).toBe("True");
});
