import { expect, test } from "vitest";
import type { OwnershipEntry } from "../../../api/ownership-slice.ts";
import { bandsOf, cellText, NOBODY } from "./bands.ts";

const SINCE = "2026-01-01T00:00:00Z";
const slice = (...entries: OwnershipEntry[]) => ({ part: "slice" as const, app: "ops/shop", entries, unread: 0 });
const owned = (subset: string, ...namespaces: string[]): OwnershipEntry => ({
  state: "Owned",
  owners: [{ subset }],
  since: SINCE,
  namespaces,
});

const shown = (...args: Parameters<typeof bandsOf>) =>
  bandsOf(...args).map(
    ({ name, cells, moving }) => `${name} ${moving}: ${cells.map(({ place, state }) => `${place} ${state}`).join(", ")}`,
  );

test("each place is in the band of its owner, by name, and each subset has a band", () => {
  expect(shown([slice(owned("default", "b", "a")), slice(owned("default", "c"))], ["default", "v2"])).toEqual([
    "default 0: a owned, b owned, c owned",
    "v2 0: ",
  ]);
});

test("other clusters, and places inside them, are places of their owners", () => {
  const insideClusters = [{ cluster: "us-1", namespaces: ["a"], clusterScope: true }];
  const entry = { ...owned("v2", "a"), clusters: ["eu-1"], insideClusters };
  expect(bandsOf([slice(entry)], ["v2"])[0]?.cells.map(({ place }) => place)).toEqual([
    "(cluster eu-1)",
    "a",
    "us-1/(cluster scope)",
    "us-1/a",
  ]);
});

test("a place that moves is in both bands, and neither says that it may write alone", () => {
  const moving: OwnershipEntry = {
    state: "Moving",
    owners: [{ subset: "v2" }],
    from: ["default"],
    since: SINCE,
    namespaces: ["b"],
  };
  const bands = bandsOf([slice(moving)], ["default", "v2"]);
  expect(bands.map(({ cells: [cell] }) => cell && cellText(cell))).toEqual([
    "b: moving to v2; pods here may still write",
    "b: moving here from default, whose pods may still write",
  ]);
  expect(bands.map(({ moving: count }) => count)).toEqual([1, 1]);
});

test("what nobody owns, what is fenced, and cluster-scoped places have their words", () => {
  const nobody: OwnershipEntry = { state: "Unowned", since: SINCE, namespaces: ["kube-system"] };
  const fenced: OwnershipEntry = { state: "Fenced", owners: [{ subset: "v2" }], since: SINCE, clusterScope: true, buckets: [3] };
  expect(shown([slice(nobody, fenced)], ["v2"])).toEqual([
    "v2 2: (cluster scope) fenced, (cluster scope, hash 3) fenced",
    `${NOBODY} 0: kube-system unowned`,
  ]);
});

test("a frozen place stays with its owner, and does not count as moving", () => {
  const frozen: OwnershipEntry = { state: "Frozen", owners: [{ subset: "v2" }], since: SINCE, namespaces: ["a"] };
  expect(shown([slice(frozen)], ["v2"])).toEqual(["v2 0: a frozen"]);
});

test("subsets that divide the resources of a place each have it, and say so", () => {
  const divided: OwnershipEntry = {
    state: "Owned",
    owners: [{ subset: "v2", resources: ["pods"] }, { subset: "default" }],
    since: SINCE,
    namespaces: ["a"],
  };
  const bands = bandsOf([slice(divided)], ["default", "v2"]);
  expect(bands.map(({ cells: [cell] }) => cell && cellText(cell))).toEqual(
    Array(2).fill("a: owned; subsets divide its resources"),
  );
});

test("the filter leaves the places with the text", () => {
  expect(shown([slice(owned("default", "team-a", "shop"))], ["default"], "eam")).toEqual(["default 0: team-a owned"]);
});
