// Writes the generated pages of docs/reference from what the code declares: the kinds, the annotations, the flags, and the queries of the chart's dashboard and alerts; and
// the chart's README from its values. Part of
// `npm run generate`; `--check` only compares and exits 1 if a page is stale, missing or left over.
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { parse } from "yaml";
import { crdOf, KIND_NAMES, type KindName } from "../src/api/crd.ts";
import { managerCommandLine } from "../src/manager/config.ts";
import { proxyCommandLine } from "../src/proxy/config.ts";
import { annotationsPage } from "./reference/annotations-page.ts";
import { flagsPage } from "./reference/flags-page.ts";
import { kindPage } from "./reference/kind-page.ts";
import { HEADER } from "./reference/markdown.ts";
import { type AlertRules, type Dashboard, queriesPage } from "./reference/queries-page.ts";
import { type ValueSchema, valuesPage } from "./reference/values-page.ts";

const ROOT = new URL("../", import.meta.url);
const FOLDER = "docs/reference/";
/** An example of each kind that users write. The end-to-end tests apply them. */
const EXAMPLES: Readonly<Partial<Record<KindName, string>>> = {
  VirtualApp: "examples/install/virtualapp.yaml",
  ShardingConfig: "examples/sharding/root.yaml",
  TrafficPolicy: "examples/traffic/traffic-policy.yaml",
  CircuitBreaker: "examples/traffic/circuit-breaker.yaml",
  FaultInjection: "examples/traffic/fault-injection.yaml",
};

const read = (path: string) => readFile(new URL(path, ROOT), "utf8");

/** The right content of all generated pages, by their paths. */
export async function referencePages(): Promise<ReadonlyMap<string, string>> {
  const pages = new Map<string, string>();
  for (const name of KIND_NAMES) {
    const path = EXAMPLES[name];
    pages.set(`${FOLDER}${name.toLowerCase()}.md`, kindPage(crdOf(name), path === undefined ? "" : await read(path)));
  }
  pages.set(`${FOLDER}flags.md`, flagsPage([managerCommandLine, proxyCommandLine]));
  pages.set(`${FOLDER}annotations.md`, annotationsPage());
  const dashboard = JSON.parse(await read("charts/ctrlmesh/files/dashboard.json")) as Dashboard;
  pages.set(`${FOLDER}queries.md`, queriesPage(dashboard, parse(await read("charts/ctrlmesh/files/alerts.yaml")) as AlertRules));
  const schema = JSON.parse(await read("charts/ctrlmesh/values.schema.json")) as ValueSchema;
  pages.set("charts/ctrlmesh/README.md", valuesPage(schema, parse(await read("charts/ctrlmesh/values.yaml"))));
  return pages;
}

/** The paths of pages that are stale, missing or left over. */
export async function stalePages(wanted: ReadonlyMap<string, string>): Promise<string[]> {
  const stale = new Set<string>();
  for (const [path, text] of wanted) {
    if ((await read(path).catch(() => undefined)) !== text) stale.add(path);
  }
  for (const name of await readdir(new URL(FOLDER, ROOT))) {
    const path = FOLDER + name;
    if (name.endsWith(".md") && !wanted.has(path) && (await read(path)).startsWith(HEADER)) stale.add(path);
  }
  return [...stale].sort();
}

if (import.meta.main) {
  const wanted = await referencePages();
  const stale = await stalePages(wanted);
  if (process.argv.includes("--check")) {
    if (stale.length > 0) console.error(`stale: ${stale.join(", ")}\nrun: npm run generate`);
    process.exitCode = stale.length > 0 ? 1 : 0;
  } else {
    for (const path of stale) {
      const text = wanted.get(path);
      if (text === undefined) await rm(new URL(path, ROOT));
      else await writeFile(new URL(path, ROOT), text);
    }
  }
}
