// Golden tests of the translation ShardingConfigs + StatefulSet + namespaces -> families, children, route table and owners:
// name.in.yaml -> name.out.yaml. After a desired change: npx vitest run --project unit test/golden -u, and read the difference.

import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { validateShardingConfig } from "../../src/api/sharding-config.ts";
import { compileNow } from "../../src/manager/apps/compile/compile-now.ts";
import { childrenOf } from "../../src/manager/sharding/children.ts";
import { type Family, familiesOf } from "../../src/manager/sharding/family.ts";
import { countGaps, countOverlaps } from "../../src/manager/sharding/family-status.ts";
import { placementOf, type StatefulSetFacts } from "../../src/manager/sharding/placement.ts";
import { objectLimitProblems, routeOfShards } from "../../src/manager/sharding/shard-rules.ts";
import { shardsOfConfigs, shardsOfRoot } from "../../src/manager/sharding/shards.ts";
import { formatPlacement } from "../../src/manager/sharding/stored-placement.ts";
import { ownersOf } from "../../src/mesh/ownership/owners.ts";
import { ownerText } from "../../src/mesh/ownership/words.ts";
import { tableToJson } from "../support/route-table.ts";

interface Input {
  readonly configs: readonly unknown[];
  readonly statefulSet?: StatefulSetFacts;
  /** The numbers of the normal shards with a ready pod. */
  readonly ready?: readonly number[];
  readonly namespaces: readonly string[];
  /** group/resource, "" for the core group */
  readonly resources: readonly string[];
}

const folder = new URL("./sharding/", import.meta.url);
const names = readdirSync(folder).flatMap((file) => /^(.*)\.in\.yaml$/.exec(file)?.[1] ?? []);

it.each(names)("translates %s", async (name) => {
  const input = parse(readFileSync(new URL(`${name}.in.yaml`, folder), "utf8")) as Input;
  const configs = input.configs.map((config) => {
    const checked = validateShardingConfig(config);
    if (!checked.ok) throw new Error(JSON.stringify(checked.problems));
    return checked.value;
  });
  const families = familiesOf(configs).map((family) => [family.name, translated(family, input)]);
  const text = stringify(Object.fromEntries(families), { aliasDuplicateObjects: false, lineWidth: 0 });
  await expect(text).toMatchFileSnapshot(`./sharding/${name}.out.yaml`);
});

function translated({ root, configs, problems }: Family, { statefulSet, ready, namespaces, resources }: Input) {
  const facts = {
    previous: undefined,
    statefulSet,
    ready: new Set(ready ?? []),
    restarting: new Set<number>(),
    namespaces,
    nowMs: 0,
  };
  const placement = root?.spec.root && placementOf({ ...facts, root: root.spec.root })?.placement;
  const ofRoot = root !== undefined && placement !== undefined;
  const family = ofRoot ? shardsOfRoot(root, placement) : shardsOfConfigs(configs);
  const refused = [...problems, ...objectLimitProblems(family.shards)];
  if (refused.length > 0) return { problems: refused };
  const table = compileNow(
    routeOfShards(family),
    namespaces.map((each) => ({ name: each, labels: {} })),
  );
  const ownersIn = (resource: string) => {
    const [group = "", plural = ""] = resource.split("/");
    const { ownerOf } = ownersOf(table, group, plural);
    return Object.fromEntries(["", ...namespaces].map((each) => [each || "(cluster)", ownerText(ownerOf(each), each)]));
  };
  return {
    ...(ofRoot ? { placement: formatPlacement(placement), children: childrenOf(root, placement) } : {}),
    table: tableToJson(table),
    owners: Object.fromEntries(resources.map((resource) => [resource, ownersIn(resource)])),
    gaps: countGaps(table),
    overlaps: countOverlaps(table),
  };
}
