import { describe, expect, it } from "vitest";
import { fence, group, limit, objectLimit, objects, snapshot, table } from "../../../test/support/route-table.ts";
import type { RouteRule } from "../../route/table.ts";
import { enforced } from "../session/enforcer.ts";
import { changeBetween } from "./view-change.ts";

const FOOS = group("demo.io", "foos");
const gold = objects("gold", "tier=gold", FOOS);
const under = (subset: string, ...rules: RouteRule[]) => enforced(snapshot(table(rules, { a: [], b: [] }), { subset }));
const change = (subset: string, before: RouteRule[], now: RouteRule[], resource = "foos", namespace = "a") =>
  changeBetween(under(subset, ...before), under(subset, ...now)).of("demo.io", resource, namespace);

describe("a change of rules on labels", () => {
  it("makes clients that watch the resource list again, since the moved objects are unknown", () => {
    const silver = objects("gold", "tier=silver", FOOS);
    for (const subset of ["gold", ""]) {
      for (const namespace of ["", "a"]) {
        expect(change(subset, [gold], [silver], "foos", namespace)).toEqual({ gained: true, lost: true });
      }
    }
    expect(change("", [], [gold])).toMatchObject({ lost: true });
    expect(change("", [gold], [])).toMatchObject({ gained: true });
  });
  it("removes unnamed namespaces when a limit on namespaces joins one on labels", () => {
    const labelled = objectLimit("x", FOOS);
    const limited = enforced(snapshot(table([labelled, limit(FOOS)], { a: [1], b: [1] })));
    expect(changeBetween(under("", labelled), limited).of("demo.io", "foos", "")).toEqual({ gained: false, lost: true });
    expect(changeBetween(under("", labelled), limited).of("demo.io", "foos", "late")).toEqual({ gained: false, lost: true });
    expect(changeBetween(under("", labelled), limited).of("demo.io", "foos", "a")).toEqual({ gained: false, lost: false });
  });
  it("does not touch other resources and other subsets", () => {
    const untouched = { gained: false, lost: false };
    expect(change("gold", [gold], [gold, objects("late", "x", FOOS)])).toEqual(untouched);
    expect(change("", [gold], [objects("gold", "x", FOOS)], "bars")).toEqual(untouched);
  });
  it("removes the whole resource while it moves, and gives it back", () => {
    expect(change("gold", [gold], [gold, fence(FOOS)], "foos", "")).toEqual({ gained: false, lost: true });
    expect(change("gold", [gold, fence(FOOS)], [gold], "foos", "")).toEqual({ gained: true, lost: false });
  });
});
