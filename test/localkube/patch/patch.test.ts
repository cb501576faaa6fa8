import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeFields, encodeFields, fieldsOf, formatPath, valuesOf } from "./field-set.ts";
import { applyJsonPatch } from "./json-patch.ts";
import { applyMergePatch } from "./merge-patch.ts";
import { applyStrategicMerge } from "./strategic-merge.ts";

const BUILT_IN = { names: [], custom: false };

describe("JSON patch", () => {
  it("adds, removes, replaces, moves, copies and tests, also in lists", () => {
    const document = { a: [1, 2, 3], b: { "x/y": 1 } };
    const patch = [
      { op: "add", path: "/a/1", value: 9 },
      { op: "add", path: "/a/-", value: 4 },
      { op: "remove", path: "/a/0" },
      { op: "move", from: "/b/x~1y", path: "/c" },
      { op: "copy", from: "/c", path: "/d" },
      { op: "test", path: "/d", value: 1 },
    ];
    expect(applyJsonPatch(document, patch)).toEqual({ a: [9, 2, 3, 4], b: {}, c: 1, d: 1 });
    expect(document).toEqual({ a: [1, 2, 3], b: { "x/y": 1 } });
  });

  it.each([
    [{ op: "remove", path: "/none" }],
    [{ op: "replace", path: "/none", value: 1 }],
    [{ op: "add", path: "/none/deep", value: 1 }],
    [{ op: "add", path: "/a/9", value: 1 }],
    [{ op: "test", path: "/b", value: 2 }],
    [{ op: "bogus", path: "/a" }],
    [{ path: "/a" }],
  ])("refuses %j", (operation) => {
    expect(() => applyJsonPatch({ a: [1], b: 1 }, [operation])).toThrow();
  });
});

describe("merge patch", () => {
  it("gives the results of the examples in RFC 7386", () => {
    expect(applyMergePatch({ a: "b", c: { d: "e", f: "g" } }, { a: "z", c: { f: null } })).toEqual({ a: "z", c: { d: "e" } });
    expect(applyMergePatch({ a: [1] }, { a: { b: { c: null } } })).toEqual({ a: { b: {} } });
    expect(applyMergePatch([1], { a: 1 })).toEqual({ a: 1 });
  });
});

describe("strategic merge", () => {
  const spec = {
    containers: [
      { name: "a", image: "1", env: [{ name: "X", value: "1" }] },
      { name: "b", image: "1" },
    ],
  };

  it("merges lists by their key at every depth", () => {
    const patch = {
      containers: [
        { name: "a", env: [{ name: "Y", value: "2" }] },
        { name: "c", image: "3" },
      ],
    };
    expect(applyStrategicMerge(spec, patch)).toEqual({
      containers: [
        {
          name: "a",
          image: "1",
          env: [
            { name: "X", value: "1" },
            { name: "Y", value: "2" },
          ],
        },
        { name: "b", image: "1" },
        { name: "c", image: "3" },
      ],
    });
  });

  it("applies $patch delete and replace, order hints and deletion from primitive lists", () => {
    const patch = {
      $setElementOrder: {},
      containers: [{ name: "a", $patch: "delete" }],
      "$setElementOrder/containers": [{ name: "b" }],
    };
    expect(applyStrategicMerge(spec, patch)).toEqual({ containers: [{ name: "b", image: "1" }] });
    expect(applyStrategicMerge({ m: { a: 1 } }, { m: { $patch: "replace", b: 2 } })).toEqual({ m: { b: 2 } });
    expect(applyStrategicMerge({ finalizers: ["a", "b"] }, { "$deleteFromPrimitiveList/finalizers": ["a"] })).toEqual({
      finalizers: ["b"],
    });
  });
});

describe("field sets", () => {
  it("are the same after a round trip through FieldsV1", () => {
    const leaf = fc.oneof(fc.string(), fc.integer(), fc.boolean());
    const tree = fc.letrec((tie) => ({
      node: fc.oneof({ depthSize: "small" }, leaf, fc.dictionary(fc.string({ minLength: 1 }), tie("node"))),
    })).node;
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.string({ minLength: 1 }).filter((key) => !key.includes("\0")),
          tree,
        ),
        (value) => {
          const fields = fieldsOf(value, BUILT_IN);
          // A field name with the path separator would look like two fields. JSON of Kubernetes has none.
          fc.pre([...fields].every((path) => !path.split("\0").includes("")));
          expect(decodeFields(encodeFields(fields))).toEqual(fields);
          expect(new Set(valuesOf(value, BUILT_IN).keys())).toEqual(fields);
        },
      ),
      { numRuns: 200 },
    );
  });

  it("name list items by their key and format paths readably", () => {
    const fields = fieldsOf(
      { spec: { containers: [{ name: "a", ports: [{ containerPort: 80 }] }] }, metadata: { finalizers: ["f"] } },
      BUILT_IN,
    );
    expect([...fields].map(formatPath)).toEqual([
      '.spec.containers[name="a"]',
      '.spec.containers[name="a"].name',
      '.spec.containers[name="a"].ports[containerPort=80,protocol="TCP"]',
      '.spec.containers[name="a"].ports[containerPort=80,protocol="TCP"].containerPort',
      '.metadata.finalizers[="f"]',
    ]);
  });
});
