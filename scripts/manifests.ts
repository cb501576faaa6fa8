// Writes deploy/ctrlmesh.yaml for installations without Helm: the namespace, and the chart with its default values. `--check`
// only compares. It needs Go to build Helm (test/tools/helm), so `npm run generate` does not run it; test/nightly/chart.test.ts
// checks the file.
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";
import { helmTemplate, MESH_NAMESPACE } from "../test/support/helm.ts";

const FILE = fileURLToPath(new URL("../deploy/ctrlmesh.yaml", import.meta.url));

/** To be replaced by that of the user. It belongs to nobody (RFC 2606). */
const REGISTRY = "registry.example.com";

const HEADER = `# Controller Mesh without Helm. Replace ${REGISTRY} by your registry: docs/tasks/install.md has the commands. Do not apply this file over a release
# of Helm's; Helm uses charts/ctrlmesh. Written by scripts/manifests.ts from the chart with its default values; change those.
`;

/** The labels that name Helm and its chart. Such an object does not belong to Helm. */
const HELM_LABELS = /^ *(?:app\.kubernetes\.io\/managed-by|helm\.sh\/chart): .*\n/gm;

const NAMESPACE = {
  apiVersion: "v1",
  kind: "Namespace",
  // The manager needs no right beyond these.
  metadata: { name: MESH_NAMESPACE, labels: { "pod-security.kubernetes.io/enforce": "restricted" } },
};

/** The namespace, and the chart with these values (YAML) over its defaults. */
export async function plainManifests(values: string): Promise<string> {
  return `---\n${stringify(NAMESPACE)}${(await helmTemplate(values, "--skip-tests")).replaceAll(HELM_LABELS, "")}`;
}

/** The right content of the file. */
async function expected(): Promise<string> {
  return HEADER + (await plainManifests(`image: { registry: ${REGISTRY} }`));
}

export async function isStale(): Promise<boolean> {
  return (await readFile(FILE, "utf8").catch(() => "")) !== (await expected());
}

if (import.meta.main) {
  if (!process.argv.includes("--check")) {
    await writeFile(FILE, await expected());
  } else if (await isStale()) {
    console.error("stale: deploy/ctrlmesh.yaml\nrun: node scripts/manifests.ts");
    process.exitCode = 1;
  }
}
