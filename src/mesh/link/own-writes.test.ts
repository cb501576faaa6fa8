// Every change of what clients are shown, also the end of what a pod retained of its own writes, is a move that they are sent.
import { describe, expect, it } from "vitest";
import { group, sharded, snapshot, subset, table } from "../../../test/support/route-table.ts";
import { BUCKETS, clusterPlace } from "../../kube/place.ts";
import { movesBetween } from "../moves/moves-between.ts";
import { enforced } from "../ownership/enforced.ts";
import { readViewOf, type Snapshot } from "../ownership/snapshot.ts";
import { retainedUnder } from "./own-writes.ts";

const WIDGETS = group("example.io", "widgets");
const RULES = [sharded(WIDGETS), subset("shard-0", WIDGETS), subset("shard-1", WIDGETS)];
/** Places of a family: the shard (0 or 1) of the cluster scope and, with `ByName`, of each bucket. */
const family = (version: number, scope: 0 | 1, byName: boolean, pod = "shard-1", more: { fenced?: string[] } = {}): Snapshot =>
  snapshot(
    table(
      RULES,
      {
        "": [scope + 1],
        ...(byName ? Object.fromEntries(BUCKETS.map((each, at) => [each, [(at % 2) + 1]])) : {}),
        n: [1],
        m: [2],
      },
      more,
    ),
    { version, digest: `digest-${version}`, subset: pod },
  );
const retainingWritten = (inForce: Snapshot, routes: Snapshot, written: ReadonlySet<string>) =>
  retainedUnder({ inForce, retaining: undefined }, { routes, written }, 0)?.routes ?? routes;
const shownIn = (routes: Snapshot, place: string) =>
  readViewOf(enforced(routes).view("example.io", "widgets")).ownershipOf(place) === "own";
/** The places whose objects clients are shown before and not after, or the reverse, without being sent a move. */
function untold(before: Snapshot, now: Snapshot): string[] {
  const { isEverything, moved } = movesBetween(enforced(before), enforced(now)).of({ group: "example.io", resource: "widgets" });
  if (isEverything || moved === undefined) return [];
  return [...BUCKETS, "n", "m"].filter((place) => shownIn(before, place) !== shownIn(now, place) && !moved.includes(place));
}

describe("cluster-scoped objects that the pod has just written and loses", () => {
  it("ByName is switched off: clients are sent what they lose, in the end", () => {
    const [byName, without] = [family(1, 0, true), family(2, 0, false)];
    const retaining = retainingWritten(byName, without, new Set(["#5"]));
    expect(shownIn(retaining, "#5")).toBe(true);
    expect(untold(byName, retaining)).toEqual([]);
    expect(untold(retaining, without)).toEqual([]);
  });

  it("the cluster scope goes to another shard: clients are sent what they lose, at each step", () => {
    const [mine, theirs] = [family(1, 1, false), family(2, 0, false)];
    const retaining = retainingWritten(mine, theirs, new Set(["#5"]));
    expect(untold(mine, retaining)).toEqual([]);
    expect(untold(retaining, theirs)).toEqual([]);
  });

  it("the cluster scope goes and comes back: clients are sent what came back", () => {
    const [mine, theirs] = [family(1, 1, false), family(2, 0, false)];
    const retaining = retainingWritten(mine, theirs, new Set(["#5"]));
    expect(untold(retaining, { ...mine, version: 3, digest: "digest-3" })).toEqual([]);
  });

  it("an object that was just created (its name is in the body) is shown", () => {
    const [mine, theirs] = [family(1, 1, false), family(2, 0, false)];
    // beginWrite counts a create at the cluster scope, since without ByName nobody reads the name from the body.
    const retaining = retainingWritten(mine, theirs, new Set([""]));
    expect(shownIn(retaining, "")).toBe(true);
    expect(shownIn(retaining, clusterPlace("just-created"))).toBe(true);
  });
});
