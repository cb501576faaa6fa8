import { describe, expect, it } from "vitest";
import { sampleShardingConfig, sampleShardingRoot, shardingProblemsOf } from "../../test/support/sharding-config.ts";

const PREFIX = "ctrlmesh.kusionstack.io/";
const pods = [{ apiGroups: [""], resources: ["pods"] }];
const problems = (selector: unknown) =>
  shardingProblemsOf(sampleShardingConfig({ limits: [{ relateResources: pods, selector }] }));
const term = (name: string, operator: string, values?: readonly string[]) => ({ key: `${PREFIX}${name}`, operator, values });

describe("the selector of a limit", () => {
  it("may have the computed keys with every operator, beside labels of objects", () => {
    const matchExpressions = [
      term("namespace", "In", ["a"]),
      term("namespace", "NotIn", ["b"]),
      term("shard-hash", "In", ["0", "31"]),
      term("shard-hash", "Exists"),
      term("namespace", "DoesNotExist"),
      { key: "tier", operator: "In", values: ["gold"] },
    ];
    expect(problems({ matchLabels: { [`${PREFIX}shard-hash`]: "7", [`${PREFIX}namespace`]: "a" }, matchExpressions })).toEqual(
      [],
    );
    expect(problems({})).toEqual([]);
    expect(problems(undefined)).toEqual([]);
  });

  it("must not have another key of the group: the message suggests the right one", () => {
    const wrong = (key: string) =>
      `"${PREFIX}${key}": is not a computed key: the computed keys are "${PREFIX}shard-hash" and "${PREFIX}namespace"; no other key may begin with ${PREFIX}`;
    const matchExpressions = [term("sharding-hash", "In", ["1"]), term("control", "Exists")];
    expect(problems({ matchLabels: { [`${PREFIX}namespaces`]: "a" }, matchExpressions })).toEqual([
      `spec.limits[0].selector.matchLabels[${PREFIX}namespaces]: ${wrong("namespaces")}; did you mean "${PREFIX}namespace"?`,
      `spec.limits[0].selector.matchExpressions[0].key: ${wrong("sharding-hash")}; did you mean "${PREFIX}shard-hash"?`,
      `spec.limits[0].selector.matchExpressions[1].key: ${wrong("control")}`,
    ]);
  });

  it("must not compare a computed key with a value that it cannot have", () => {
    const matchExpressions = [term("shard-hash", "NotIn", ["1", "32", "01", ""]), term("namespace", "In", ["a", "Team_A"])];
    expect(problems({ matchLabels: { [`${PREFIX}shard-hash`]: "x" }, matchExpressions })).toEqual([
      `spec.limits[0].selector.matchLabels[${PREFIX}shard-hash]: "x": must be a whole number from "0" to "31"`,
      'spec.limits[0].selector.matchExpressions[0].values[1]: "32": must be a whole number from "0" to "31"',
      'spec.limits[0].selector.matchExpressions[0].values[2]: "01": must be a whole number from "0" to "31"',
      'spec.limits[0].selector.matchExpressions[0].values[3]: "": must be a whole number from "0" to "31"',
      'spec.limits[0].selector.matchExpressions[1].values[1]: "Team_A": must be the name of a namespace: no namespace can have this name',
    ]);
  });

  it("may list a thousand namespaces", () => {
    const names = (count: number) => Array.from({ length: count }, (_, index) => `n${index}`);
    expect(problems({ matchExpressions: [term("namespace", "In", names(1_024))] })).toEqual([]);
    expect(problems({ matchExpressions: [term("namespace", "In", names(1_025))] })).toEqual([
      "spec.limits[0].selector.matchExpressions[0].values: must have at most 1024 items",
    ]);
  });

  it("is checked in a root too", () => {
    const resourceSelector = [{ relateResources: pods, selector: { matchLabels: { [`${PREFIX}shard-hsah`]: "1" } } }];
    expect(shardingProblemsOf(sampleShardingRoot({ resourceSelector }))).toEqual([
      expect.stringMatching(/^spec\.root\.resourceSelector\[0\]\.selector\.matchLabels.*did you mean/),
    ]);
  });
});
