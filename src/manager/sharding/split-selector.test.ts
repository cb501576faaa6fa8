import { describe, expect, it } from "vitest";
import type { LabelSelector } from "../../api/label-selector.ts";
import { formatTerms } from "../../kube/label-selector.ts";
import { computedKeys, splitSelector } from "./shards.ts";

const PREFIX = "ctrlmesh.kusionstack.io";
// Their hashes are 5, 25, 18 and 3.
const NAMES = ["default", "kube-system", "foo-01", "test-mysql"];

type Operator = NonNullable<LabelSelector["matchExpressions"]>[number]["operator"];
const term = (key: string, operator: Operator, ...values: string[]) => ({
  key: `${PREFIX}/${key}`,
  operator,
  ...(values.length === 0 ? {} : { values }),
});

function contained(selector: LabelSelector | undefined, shardOf = (_: string) => ""): string[] {
  const { contains } = splitSelector(selector);
  return NAMES.filter((name) => contains(computedKeys(name, shardOf(name))));
}

describe("the test of a namespace", () => {
  it("contains every namespace without a selector, and with labels of objects alone", () => {
    expect(contained(undefined)).toEqual(NAMES);
    expect(contained({ matchLabels: { app: "shop" } })).toEqual(NAMES);
  });

  it.each([
    [term("namespace", "In", "default", "foo-01"), ["default", "foo-01"]],
    [term("namespace", "NotIn", "default", "foo-01"), ["kube-system", "test-mysql"]],
    [term("shard-hash", "In", "5", "18"), ["default", "foo-01"]],
    [term("shard-hash", "NotIn", "5", "18"), ["kube-system", "test-mysql"]],
    [term("shard-hash", "Exists"), NAMES],
    [term("namespace", "Exists"), NAMES],
    [term("shard-hash", "DoesNotExist"), []],
    [term("namespace", "DoesNotExist"), []],
  ])("goes by the name alone: %j", (expression, expected) => {
    expect(contained({ matchExpressions: [expression] })).toEqual(expected);
  });

  it("is true if all terms are, also those of matchLabels", () => {
    const selector = {
      matchLabels: { [`${PREFIX}/shard-hash`]: "5" },
      matchExpressions: [term("namespace", "In", "default", "foo-01")],
    };
    expect(contained(selector)).toEqual(["default"]);
    expect(contained({ ...selector, matchExpressions: [term("namespace", "NotIn", "default")] })).toEqual([]);
  });

  it("goes by the placement for the key of children", () => {
    const placed = (name: string) => (name === "default" ? "shop-1-normal" : "shop-2-normal");
    expect(contained({ matchExpressions: [term("shard", "In", "shop-1-normal")] }, placed)).toEqual(["default"]);
  });
});

describe("the terms of objects", () => {
  it("are all others, and never a computed key", () => {
    const { terms } = splitSelector({
      matchLabels: { app: "shop", [`${PREFIX}/namespace`]: "default" },
      matchExpressions: [
        { key: "tier", operator: "NotIn", values: ["b", "a"] },
        { key: "old", operator: "DoesNotExist" },
        term("shard-hash", "In", "1"),
        term("shard", "Exists"),
      ],
    });
    expect(formatTerms(terms)).toBe("app=shop,tier notin (a,b),!old");
  });
});
