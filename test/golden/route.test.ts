// Golden tests of the translation VirtualApp + namespaces -> route table and owners: name.in.yaml -> name.out.yaml.
// After a desired change: npx vitest run --project unit test/golden -u, and read the difference.
import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { validateVirtualApp } from "../../src/api/virtual-app.ts";
import { formatTerms, type Labels } from "../../src/kube/label-selector.ts";
import type { NamespaceFacts } from "../../src/manager/sources/app.ts";
import { compileRoute } from "../../src/manager/sources/virtual-app/compile-route.ts";
import { ownersOf, ownerText } from "../../src/route/table.ts";
import { tableToWire } from "../../src/wire/table-codec.ts";

interface Input {
  readonly virtualApp: unknown;
  readonly namespaces: readonly NamespaceFacts[];
  /** group/resource, "" for the core group */
  readonly resources: readonly string[];
  /** Labels of objects, for rules on labels. */
  readonly objects?: readonly Labels[];
}

const folder = new URL("./route/", import.meta.url);
const names = readdirSync(folder).flatMap((file) => /^(.*)\.in\.yaml$/.exec(file)?.[1] ?? []);

it.each(names)("translates %s", async (name) => {
  const input = parse(readFileSync(new URL(`${name}.in.yaml`, folder), "utf8")) as Input;
  const checked = validateVirtualApp(input.virtualApp);
  if (!checked.ok) throw new Error(JSON.stringify(checked.problems));
  const namespaces = input.namespaces.map((row) => ({ name: row.name, labels: row.labels ?? {} }));
  const table = compileRoute(checked.value.spec, namespaces);
  const owners = Object.fromEntries(
    input.resources.map((resource) => {
      const [group = "", plural = ""] = resource.split("/");
      const { ownerOf, termsOf } = ownersOf(table, group, plural);
      const rows = ["", ...namespaces.map((row) => row.name)].map((row) => {
        const objects = (input.objects ?? []).map((labels) => [JSON.stringify(labels), ownerText(ownerOf(row, labels))]);
        return [row || "(cluster)", objects.length === 0 ? ownerText(ownerOf(row)) : Object.fromEntries(objects)];
      });
      const subsets = ["", ...(checked.value.spec.subsets ?? []).map(({ name: subset }) => subset)];
      const selectors = subsets.map((subset) => [subset || "(default)", formatTerms(termsOf(subset))]);
      return [
        resource,
        Object.fromEntries(input.objects === undefined ? rows : [["(selectors)", Object.fromEntries(selectors)], ...rows]),
      ];
    }),
  );
  await expect(stringify({ table: tableToWire(table), owners })).toMatchFileSnapshot(`./route/${name}.out.yaml`);
});
