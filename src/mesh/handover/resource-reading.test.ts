import { describe, expect, it } from "vitest";
import { fence, group, limit, objects, sharded, subset, table, unreportedFence } from "../../../test/support/route-table.ts";
import type { GroupResource } from "../../kube/types.ts";
import type { RouteTable } from "../ownership/table.ts";
import { covers, meets, readingOf } from "./resource-reading.ts";

const key = (text: string): GroupResource => {
  const [group = "", resource = ""] = text.split("/");
  return { group, resource };
};
const MAPS = group("", "configmaps");
const read = (of: RouteTable, text: string) => readingOf(of, key(text), () => true);

describe("keys", () => {
  it.each([
    ["/pods", "/pods", true, true],
    ["*/pods", "/pods", true, true],
    ["*/*", "apps/*", true, true],
    ["/pods", "*/pods", false, true],
    ["apps/*", "*/pods", false, true],
    ["apps/*", "/pods", false, false],
    ["/pods", "/secrets", false, false],
  ])("%s and %s: covers %s, meets %s", (a, b, isCovered, isMet) => {
    expect([covers(key(a), key(b)), meets(key(a), key(b)), meets(key(b), key(a))]).toEqual([isCovered, isMet, isMet]);
  });
});

describe("readingOf", () => {
  it("tells whether the table stops all, a part or none of a key", () => {
    const stopped = (of: RouteTable, text: string) => read(of, text).stopped;
    const moving = table([fence(MAPS)], {}, { sharedResources: [MAPS] });
    expect(["/configmaps", "/*", "/pods"].map((text) => stopped(moving, text))).toEqual(["all", "part", "none"]);
    const little = table([unreportedFence()], {}, { sharedResources: [MAPS] });
    expect(["/configmaps", "/*", "/pods"].map((text) => stopped(little, text))).toEqual(["none", "part", "all"]);
    const divided = table([unreportedFence(), objects("a", "x", MAPS)], {}, { sharedResources: [group("*")] });
    expect(["/configmaps", "/pods"].map((text) => stopped(divided, text))).toEqual(["all", "none"]);
  });
  it("gives equal results for rules that are only written differently", () => {
    const division = (...rules: Parameters<typeof table>[0]) => read(table(rules, {}), "/configmaps").division;
    expect(division(objects("a", "x", group("*", "configmaps"), MAPS))).toBe(division(objects("a", "x", MAPS)));
    expect(division(objects("a", "x", MAPS), objects("b", "y", MAPS))).not.toBe(
      division(objects("b", "y", MAPS), objects("a", "x", MAPS)),
    );
    expect(division(limit(MAPS), subset("a", MAPS))).toBe(division());
  });
  it("takes what a sharded rule does not name for shared", () => {
    const family = table([sharded(MAPS), subset("a"), subset("b", MAPS)], { x: [1, 2] });
    const open = table([], {}, { sharedResources: [group("*")] });
    expect(["/pods", "/*", "/configmaps"].map((text) => read(family, text).isShared)).toEqual([true, true, false]);
    expect(read(family, "/pods").division).toBe(read(open, "/pods").division);
    expect(read(family, "/*").division).not.toBe(read(open, "/*").division);
    expect(read(family, "/configmaps").division).not.toBe(read(table([], {}), "/configmaps").division);
    const little = table([sharded(MAPS), unreportedFence()], {});
    expect(["/pods", "/*", "/configmaps"].map((text) => read(little, text).stopped)).toEqual(["none", "none", "all"]);
  });
  it("reads rules on namespaces that name a shared resource, in the relevant namespaces", () => {
    const taken = table([subset("a", MAPS)], { prod: [], pilot: [0] }, { sharedResources: [MAPS] });
    const open = table([], { prod: [], pilot: [] }, { sharedResources: [MAPS] });
    expect([read(open, "/configmaps").isShared, read(taken, "/configmaps").isShared]).toEqual([true, false]);
    const elsewhere = { ...taken, classes: [[0], [0]] };
    const division = (of: RouteTable, known: string[]) =>
      readingOf(of, key("/configmaps"), (namespace) => known.includes(namespace)).division;
    expect(division(elsewhere, ["prod", "pilot"])).not.toBe(division(taken, ["prod", "pilot"]));
    expect(division(elsewhere, ["pilot"])).toBe(division(taken, ["pilot"]));
    expect(division(open, [])).not.toBe(division(taken, []));
  });
});
