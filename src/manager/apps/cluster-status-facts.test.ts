import { expect, it } from "vitest";
import { clusterStatusFacts } from "./cluster-status-facts.ts";

it("reads the owners of a cluster, and whether it is unreachable", () => {
  const owners = [
    { app: "shop", subset: "blue" },
    { app: "depot", subset: "default" },
  ];
  const status = { owners, conditions: [{ type: "Reachable", status: "False", reason: "Unreachable" }] };
  expect(clusterStatusFacts(status)).toEqual({
    owners: new Map([
      ["shop", "blue"],
      ["depot", ""],
    ]),
    isUnreachable: true,
  });
});

it("reads since when a cluster is reachable", () => {
  const condition = { type: "Reachable", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" };
  expect(clusterStatusFacts({ conditions: [condition] })).toEqual({ reachableSince: "2026-01-01T00:00:00Z" });
});

it.each([[undefined], ["text"], [{}], [{ owners: "all", conditions: [{ type: "Reachable", status: "Unknown" }] }]])(
  "finds nothing in the status %o",
  (status) => {
    expect(clusterStatusFacts(status)).toEqual({});
  },
);
