// Golden tests of the translation VirtualApp + namespaces -> route table and owners: name.in.yaml -> name.out.yaml. A file may have a route
// in place of the VirtualApp.
// After a desired change: npx vitest run --project unit test/golden -u, and read the difference.
import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { validateVirtualApp } from "../../src/api/virtual-app.ts";
import { formatTerms, type Labels } from "../../src/kube/label-selector.ts";
import { compileNow } from "../../src/manager/apps/compile/compile-now.ts";
import type { NamespaceFacts } from "../../src/manager/apps/compile/route-spec.ts";
import { routeOf } from "../../src/manager/virtual-app/route-rules.ts";
import { tableHash, tableToBytes } from "../../src/mesh/contract/table-json.ts";
import { ownersOf } from "../../src/mesh/ownership/owners.ts";
import { namespacesOf, type RouteRule, type RouteTable } from "../../src/mesh/ownership/table.ts";
import { ownerText } from "../../src/mesh/ownership/words.ts";
import { tableFromBytes, table as tableOf, tableToJson } from "../support/route-table.ts";

interface Input {
  readonly virtualApp: unknown;
  readonly namespaces: readonly NamespaceFacts[];
  /** In place of a VirtualApp and namespaces. */
  readonly route?: { readonly rules: readonly RouteRule[]; readonly members: Readonly<Record<string, readonly number[]>> };
  /** group/resource, "" for the core group */
  readonly resources: readonly string[];
  /** Labels of objects, for rules on labels. */
  readonly objects?: readonly Labels[];
}

const folder = new URL("./route/", import.meta.url);
const names = readdirSync(folder).flatMap((file) => /^(.*)\.in\.yaml$/.exec(file)?.[1] ?? []);

it.each(names)("translates %s", async (name) => {
  const input = parse(readFileSync(new URL(`${name}.in.yaml`, folder), "utf8")) as Input;
  const { table, subsets } = input.route === undefined ? compiled(input) : given(input.route);
  // As a proxy reads it.
  expect(tableHash(tableFromBytes(tableToBytes(table)))).toEqual(tableHash(table));
  const owners = Object.fromEntries(
    input.resources.map((resource) => {
      const [group = "", plural = ""] = resource.split("/");
      const { ownerOf, termsOf } = ownersOf(table, group, plural);
      const rows = ["", ...namespacesOf(table)].map((row) => {
        const objects = (input.objects ?? []).map((labels) => [JSON.stringify(labels), ownerText(ownerOf(row, labels), row)]);
        return [row || "(cluster)", objects.length === 0 ? ownerText(ownerOf(row), row) : Object.fromEntries(objects)];
      });
      const selectors = subsets.map((subset) => [subset || "(default)", formatTerms(termsOf(subset))]);
      return [
        resource,
        Object.fromEntries(input.objects === undefined ? rows : [["(selectors)", Object.fromEntries(selectors)], ...rows]),
      ];
    }),
  );
  await expect(stringify({ table: tableToJson(table), owners })).toMatchFileSnapshot(`./route/${name}.out.yaml`);
});

interface Compiled {
  readonly table: RouteTable;
  readonly subsets: readonly string[];
}

function compiled(input: Input): Compiled {
  const checked = validateVirtualApp(input.virtualApp);
  if (!checked.ok) throw new Error(JSON.stringify(checked.problems));
  const namespaces = input.namespaces.map((row) => ({ name: row.name, labels: row.labels ?? {} }));
  const { spec } = checked.value;
  return { table: compileNow(routeOf(spec), namespaces), subsets: ["", ...(spec.subsets ?? []).map(({ name }) => name)] };
}

function given({ rules, members }: NonNullable<Input["route"]>): Compiled {
  const shards = rules.flatMap((rule) => (rule.kind === "subset" ? [rule.subset] : []));
  return { table: tableOf(rules, members), subsets: ["", ...shards] };
}
