// Writes the files of a release that need no registry: the chart, plain manifests, CRDs, notes, the list of packages (SBOM), the
// executables of ctrlmesh with the manifest of the kubectl plugin, and checksums.
// Chart and manifests name the images of the given registry. Used by `npm run release`.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseDocument } from "yaml";
import { CHART, helm } from "../../test/support/helm.ts";
import { bundle, PROGRAMS } from "../build/bundle.ts";
import { generatedFiles } from "../generate.ts";
import { chartValues } from "../images/plan.ts";
import { plainManifests } from "../manifests.ts";
import { writeExecutables } from "./executables.ts";
import { krewManifest } from "./krew.ts";
import type { Platform } from "./platforms.ts";
import { shippedPackages } from "./shipped-packages.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const KREW = join(ROOT, "scripts/release/krew.yaml");

export interface Release {
  readonly version: string;
  /** Where the images are. */
  readonly registry: string;
  readonly notes: string;
  /** Of the executables. */
  readonly platforms: readonly Platform[];
}

/** Empties the folder and writes the files. @throws Error with the output of helm or npm */
export async function writeArtifacts(dir: string, { version, registry, notes, platforms }: Release): Promise<void> {
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  const values = valuesFor(registry, version);
  await packChart(dir, values);
  const write = (name: string, text: string) => writeFileSync(join(dir, name), text);
  write("ctrlmesh.yaml", await plainManifests(values));
  write("ctrlmesh-crds.yaml", crds());
  write("ctrlmesh.cdx.json", await packages());
  write("release-notes.md", notes);
  const archives = await writeExecutables(dir, version, platforms);
  if (archives.length > 0) write("ctrlmesh-krew.yaml", krewManifest(readFileSync(KREW, "utf8"), version, archives));
  const sums = readdirSync(dir).map(
    (name) =>
      `${createHash("sha256")
        .update(readFileSync(join(dir, name)))
        .digest("hex")}  ${name}\n`,
  );
  write("SHA256SUMS", sums.join(""));
}

/** The chart's values.yaml, comments and all, with the names of the images. */
function valuesFor(registry: string, tag: string): string {
  const values = parseDocument(readFileSync(join(CHART, "values.yaml"), "utf8"));
  for (const [path, value] of Object.entries(chartValues({ registry, tag }))) values.setIn(path.split("."), value);
  return values.toString({ lineWidth: 0 });
}

async function packChart(dir: string, values: string): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), "ctrlmesh-chart-"));
  try {
    const chart = join(work, "ctrlmesh");
    cpSync(CHART, chart, { recursive: true });
    writeFileSync(join(chart, "values.yaml"), values);
    await helm(["package", chart, "--destination", dir]);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function crds(): string {
  return [...generatedFiles()].flatMap(([path, text]) => (path.startsWith("deploy/crds/") ? [text] : [])).join("---\n");
}

/** CycloneDX, of the packages in the bundles of the images. Those of the base images are in the images' own lists. */
async function packages(): Promise<string> {
  const args = ["sbom", "--sbom-format", "cyclonedx", "--package-lock-only"];
  const all = execFileSync("npm", args, { cwd: ROOT, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  const work = mkdtempSync(join(tmpdir(), "ctrlmesh-bundles-"));
  try {
    const bundled = (await Promise.all(PROGRAMS.map((program) => bundle(program, work)))).flat();
    return shippedPackages(all, new Set(bundled.map(({ name, version }) => `${name}@${version}`)));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
