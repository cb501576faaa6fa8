// Writes the files that are derived from the schemas: deploy/crds/<plural>.<group>.yaml, and the same as templates of the Helm
// chart. `npm run generate` writes; `--check` only compares and exits 1 if a file is stale, missing or left over. The output
// depends on src/api alone.
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";
import { crdOf, KIND_NAMES } from "../src/api/crd.ts";

const ROOT = new URL("../", import.meta.url);
const CRD_FOLDER = "deploy/crds/";
const CHART_CRD_FOLDER = "charts/ctrlmesh/templates/crds/";
const FOLDERS = [CRD_FOLDER, CHART_CRD_FOLDER];
const HEADER = "# Written by scripts/generate.ts from the schemas in src/api; change those and run `npm run generate`.\n";

/** The right content of all generated files, by their paths in the repository. */
export function generatedFiles(): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const name of KIND_NAMES) {
    const crd = crdOf(name);
    const text = stringify(crd, { lineWidth: 0, aliasDuplicateObjects: false });
    files.set(`${CRD_FOLDER}${crd.metadata.name}.yaml`, HEADER + text);
    files.set(`${CHART_CRD_FOLDER}${crd.metadata.name}.yaml`, chartTemplate(text));
  }
  return files;
}

// Templates, not Helm's folder crds/, which `helm upgrade` never touches. The release deletes a CRD only if a value asks for it,
// since all of its objects go with it.
function chartTemplate(crd: string): string {
  const literal = crd.replaceAll("{{", '{{ "{{" }}');
  const own = '(ternary (dict "helm.sh/resource-policy" "keep") dict .Values.crds.keep)';
  const annotations = `{{- with include "ctrlmesh.annotations" (list . ${own}) }}{{ . | trim | nindent 2 }}{{ end }}\n`;
  const [before, after] = splitAfter(literal, /^metadata:\n {2}name: .*\n/m);
  return `${HEADER}{{- if .Values.crds.install }}\n${before}${annotations}${after}{{- end }}\n`;
}

function splitAfter(text: string, pattern: RegExp): readonly [string, string] {
  const match = pattern.exec(text);
  if (match === null) throw new Error(`no ${pattern} in a CRD`);
  const end = match.index + match[0].length;
  return [text.slice(0, end), text.slice(end)];
}

/** The paths of generated files that are stale, missing or left over. */
export async function staleFiles(): Promise<string[]> {
  const wanted = generatedFiles();
  const present = new Set<string>();
  for (const folder of FOLDERS) {
    for (const name of await readdir(new URL(folder, ROOT)).catch((): string[] => [])) present.add(`${folder}${name}`);
  }
  const stale: string[] = [];
  for (const path of new Set([...wanted.keys(), ...present])) {
    const content = present.has(path) ? await readFile(new URL(path, ROOT), "utf8") : undefined;
    if (content !== wanted.get(path)) stale.push(path);
  }
  return stale.sort();
}

async function write(): Promise<void> {
  for (const folder of FOLDERS) await mkdir(new URL(folder, ROOT), { recursive: true });
  const wanted = generatedFiles();
  for (const path of await staleFiles()) {
    const content = wanted.get(path);
    if (content === undefined) await rm(new URL(path, ROOT));
    else await writeFile(new URL(path, ROOT), content);
    console.log(`${content === undefined ? "removed" : "wrote"} ${fileURLToPath(new URL(path, ROOT))}`);
  }
}

async function check(): Promise<void> {
  const stale = await staleFiles();
  if (stale.length === 0) return;
  console.error(`stale: ${stale.join(", ")}\nrun: npm run generate`);
  process.exitCode = 1;
}

if (import.meta.main) await (process.argv.includes("--check") ? check() : write());
