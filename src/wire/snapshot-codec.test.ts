import { describe, expect, it } from "vitest";
import { group, limit, snapshot, subset, table } from "../../test/support/route-table.ts";
import { SnapshotInvalidError, snapshotFromWire, snapshotToWire } from "./snapshot-codec.ts";

const routes = table(
  [limit(), subset("canary", group("apps", "deployments"))],
  { a: [0], b: [0, 1], c: [] },
  {
    publicResources: [group("", "nodes")],
    fenced: ["b"],
  },
);

describe("snapshot codec", () => {
  it("gives back what it was given", () => {
    const before = snapshot(routes, { subset: "canary" });
    expect(snapshotFromWire(snapshotToWire(before, 3))).toEqual(before);
  });
  it("names every problem of a snapshot at once", () => {
    const message = snapshotToWire(snapshot(routes), 1);
    const bad = {
      ...message,
      version: 0,
      digest: "",
      app: null,
      table: {
        rules: [{ kind: "SUBSET" as const, subset: "", resources: [], origin: "" }],
        classes: [
          { rules: [4], namespaces: ["a"] },
          { rules: [], namespaces: ["a"] },
        ],
        publicResources: [],
        fenced: [],
      },
    };
    let problems: readonly string[] = [];
    try {
      snapshotFromWire(bad);
    } catch (error) {
      problems = (error as SnapshotInvalidError).problems;
    }
    expect(problems).toEqual([
      "version: 0 is not positive",
      "digest: missing",
      "app: missing",
      "table.rules[0].subset: missing",
      "table.classes[0].rules: 4 is no rule, there are 1",
      'table.classes[1].namespaces: "a" is in two classes',
    ]);
  });
  it("refuses a rule of a kind that a newer manager may know", () => {
    const message = snapshotToWire(snapshot(routes), 1);
    const [rule] = message.table?.rules ?? [];
    const newer = { ...message, table: { ...message.table, rules: [{ ...rule, kind: "KIND_UNSPECIFIED" }] } } as typeof message;
    expect(() => snapshotFromWire(newer)).toThrow(SnapshotInvalidError);
  });
});
