// Writes what is derived from the schemas: deploy/crds/<plural>.<group>.yaml. `npm run generate` writes; with `--check` it
// only compares and exits 1 when a file is stale, missing or left over. The output depends on src/api alone.
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";
import { crdOf, KIND_NAMES } from "../src/api/crd.ts";

const CRD_FOLDER = new URL("../deploy/crds/", import.meta.url);
const HEADER = "# Written by scripts/generate.ts from the schemas in src/api; change those and run `npm run generate`.\n";

/** The files of deploy/crds by name, as they must be. */
export function crdFiles(): ReadonlyMap<string, string> {
  return new Map(
    KIND_NAMES.map((name) => {
      const crd = crdOf(name);
      return [`${crd.metadata.name}.yaml`, HEADER + stringify(crd, { lineWidth: 0, aliasDuplicateObjects: false })];
    }),
  );
}

/** Names of the files in deploy/crds that differ from what the schemas say, are missing, or should not be there. */
export async function staleCrdFiles(): Promise<string[]> {
  const wanted = crdFiles();
  const present = await readdir(CRD_FOLDER).catch((): string[] => []);
  const names = new Set([...wanted.keys(), ...present]);
  const stale: string[] = [];
  for (const name of [...names].sort()) {
    const content = present.includes(name) ? await readFile(new URL(name, CRD_FOLDER), "utf8") : undefined;
    if (content !== wanted.get(name)) stale.push(name);
  }
  return stale;
}

async function write(): Promise<void> {
  await mkdir(CRD_FOLDER, { recursive: true });
  const wanted = crdFiles();
  for (const name of await staleCrdFiles()) {
    const content = wanted.get(name);
    if (content === undefined) await rm(new URL(name, CRD_FOLDER));
    else await writeFile(new URL(name, CRD_FOLDER), content);
    console.log(`${content === undefined ? "removed" : "wrote"} ${fileURLToPath(new URL(name, CRD_FOLDER))}`);
  }
}

async function check(): Promise<void> {
  const stale = await staleCrdFiles();
  if (stale.length === 0) return;
  console.error(`stale in deploy/crds: ${stale.join(", ")}\nrun: npm run generate`);
  process.exitCode = 1;
}

if (import.meta.main) await (process.argv.includes("--check") ? check() : write());
