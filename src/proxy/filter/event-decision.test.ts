import { describe, expect, it } from "vitest";
import { fence, group, limit, objects, snapshot, table } from "../../../test/support/route-table.ts";
import type { WatchEventType } from "../../kube/codec/codec.ts";
import type { RouteRule } from "../../mesh/ownership/table.ts";
import { viewOf } from "../../mesh/ownership/view-of.ts";
import { decideEvent } from "./event-decision.ts";

const FOOS = group("demo.io", "foos");
const GOLD = { tier: "gold" };
const SILVER = { tier: "silver" };
const rule = objects("gold", "tier=gold", FOOS);

function judge(type: WatchEventType, labels: Record<string, string> | undefined, rules: RouteRule[] = [rule], namespace = "a") {
  const routes = table(rules, { a: rules.map((_, index) => index).filter((index) => rules[index]?.kind === "limit") });
  const meta = { name: "x", namespace, ...(labels === undefined ? {} : { labels }) };
  const event = { type, objects: [meta], unreadable: 0, isTable: false };
  return decideEvent(viewOf(snapshot(routes, { subset: "gold" }), "demo.io", "foos"), event, () => false, false);
}

describe("an event of a resource that labels divide", () => {
  it("is shown if its object has our labels, the last of one that leaves too", () => {
    for (const type of ["ADDED", "MODIFIED", "DELETED"] as const) expect(judge(type, GOLD).action).toEqual({ kind: "show" });
  });
  it("is dropped if it has not, or if nobody knows them", () => {
    for (const labels of [SILVER, {}, undefined]) {
      for (const type of ["ADDED", "DELETED"] as const) expect(judge(type, labels).action).toEqual({ kind: "drop" });
    }
  });
  it("makes the client list again if an object that may have been shown comes with foreign labels", () => {
    expect(judge("MODIFIED", SILVER).action).toEqual({ kind: "relist" });
  });
  it("is not held for its namespace if its labels are foreign anyway", () => {
    expect(judge("ADDED", GOLD, [limit(), rule], "new").action).toEqual({ kind: "hold", namespaces: ["new"] });
    for (const type of ["ADDED", "MODIFIED", "DELETED"] as const) {
      expect(judge(type, SILVER, [limit(), rule], "new").action).toEqual({ kind: "drop" });
    }
  });
  it("is dropped while the resource moves", () => {
    expect(judge("MODIFIED", GOLD, [rule, fence(FOOS)])).toEqual({ action: { kind: "drop" }, leftOut: [] });
  });
});
