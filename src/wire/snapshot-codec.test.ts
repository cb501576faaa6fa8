import { describe, expect, it } from "vitest";
import {
  fence,
  group,
  limit,
  objectLimit,
  objects,
  snapshot,
  subset,
  table,
  unreportedFence,
} from "../../test/support/route-table.ts";
import { loadMeshService } from "./load-proto.ts";
import { SnapshotInvalidError, snapshotFromWire, snapshotToWire } from "./snapshot-codec.ts";

const maps = group("", "configmaps");
const routes = table(
  [
    limit(),
    subset("canary", group("apps", "deployments")),
    objectLimit("env=prod,!old", maps),
    objects("canary", "tier notin (gold,silver)", maps),
    fence(maps),
    unreportedFence(),
  ],
  { a: [0], b: [0, 1], c: [] },
  {
    sharedResources: [group("", "nodes")],
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
        sharedResources: [],
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
  it("names what is wrong with a rule on labels", () => {
    const message = snapshotToWire(snapshot(routes), 1);
    const term = { key: "tier", operator: "in", values: ["gold"] };
    const rule = { kind: "OBJECTS" as const, subset: "canary", resources: [maps], origin: "", terms: [term] };
    const problemsWith = (...rules: object[]) => {
      try {
        snapshotFromWire({ ...message, table: { ...message.table, rules, classes: [] } } as typeof message);
        return [];
      } catch (error) {
        return (error as SnapshotInvalidError).problems;
      }
    };
    expect(problemsWith(rule, { ...rule, terms: undefined })).toEqual(["table.rules[1].terms: must be one, are 0"]);
    expect(problemsWith({ ...rule, subset: "", resources: [] })).toEqual([
      "table.rules[0].subset: missing",
      "table.rules[0].resources: missing",
    ]);
    expect(problemsWith({ ...rule, terms: [{ ...term, operator: "gt" }] })).toEqual([
      'table.rules[0].terms[0].operator: "gt" is not known to this proxy',
    ]);
    expect(problemsWith({ ...rule, terms: [{ ...term, values: [], key: "" }] })).toEqual([
      "table.rules[0].terms[0].key: missing",
      "table.rules[0].terms[0].values: in needs some",
    ]);
    expect(problemsWith({ ...rule, kind: 9 })).toEqual(["table.rules[0].kind: 9 is not known to this proxy"]);
  });
  it("survives the bytes of the contract", () => {
    const before = snapshot(routes, { subset: "canary" });
    const method = loadMeshService().Connect;
    if (method === undefined) throw new Error("the contract has no method Connect");
    const bytes = method.responseSerialize({ snapshot: snapshotToWire(before, 3) });
    const read = method.responseDeserialize(bytes) as { snapshot: Parameters<typeof snapshotFromWire>[0] };
    expect(snapshotFromWire(read.snapshot)).toEqual(before);
  });
  it("refuses a rule of a kind that a newer manager may know", () => {
    const message = snapshotToWire(snapshot(routes), 1);
    const [rule] = message.table?.rules ?? [];
    const newer = { ...message, table: { ...message.table, rules: [{ ...rule, kind: "KIND_UNSPECIFIED" }] } } as typeof message;
    expect(() => snapshotFromWire(newer)).toThrow(SnapshotInvalidError);
  });
});
