// Writes deploy/ctrlmesh.yaml for installations without Helm: the namespace, and the chart with its default values. `--check`
// only compares. It needs Go to build Helm (test/tools/helm), so `npm run generate` does not run it; test/e2e/chart.test.ts
// checks the file.
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";
import { helmTemplate, MESH_NAMESPACE } from "../test/support/helm.ts";

const FILE = fileURLToPath(new URL("../deploy/ctrlmesh.yaml", import.meta.url));

const HEADER = `# Controller Mesh without Helm: kubectl apply --server-side -f deploy/ctrlmesh.yaml (docs/tasks/install.md).
# Written by scripts/manifests.ts from charts/ctrlmesh with its default values; change those.
`;

const NAMESPACE = {
  apiVersion: "v1",
  kind: "Namespace",
  // The manager needs no right beyond these.
  metadata: { name: MESH_NAMESPACE, labels: { "pod-security.kubernetes.io/enforce": "restricted" } },
};

/** The right content of the file. */
export async function plainManifests(): Promise<string> {
  return `${HEADER}---\n${stringify(NAMESPACE)}${await helmTemplate()}`;
}

export async function isStale(): Promise<boolean> {
  return (await readFile(FILE, "utf8").catch(() => "")) !== (await plainManifests());
}

if (import.meta.main) {
  if (!process.argv.includes("--check")) {
    await writeFile(FILE, await plainManifests());
  } else if (await isStale()) {
    console.error("stale: deploy/ctrlmesh.yaml\nrun: node scripts/manifests.ts");
    process.exitCode = 1;
  }
}
