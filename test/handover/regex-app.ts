// A VirtualApp that is edited to move namespaces: its subset v2 owns the namespaces that match a regular expression, the default subset
// all others. Losses are in place.
import { stringify } from "yaml";
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { eventually } from "../support/eventually.ts";
import type { Mesh } from "../support/mesh.ts";

/** The YAML of the VirtualApp. */
export function regexApp({ appNamespace: namespace, appName: name }: Mesh, regex: string): string {
  return stringify({
    apiVersion: "ctrlmesh.kruise.io/v1alpha1",
    kind: "VirtualApp",
    metadata: { namespace, name },
    spec: specOf(name, regex),
  });
}

/** Edits the VirtualApp. @returns the generation of the edit */
export async function setRegex(
  { client, appNamespace: namespace, appName: name }: Mesh,
  regex: string,
): Promise<number | undefined> {
  const patch = { type: "merge", body: { spec: specOf(name, regex) } } as const;
  return (await client.patch(VIRTUAL_APPS, { namespace, name }, patch)).metadata.generation;
}

/** True if the VirtualApp's Converged is True for the generation. */
export async function isConverged(
  { client, appNamespace: namespace, appName: name }: Mesh,
  generation: number | undefined,
): Promise<boolean> {
  const { status } = await client.get(VIRTUAL_APPS, { namespace, name });
  const converged = status?.conditions?.find(({ type }) => type === "Converged");
  return converged?.status === "True" && converged.observedGeneration === generation;
}

/** Edits the VirtualApp and waits until the namespaces have moved. */
export async function moveTo(mesh: Mesh, regex: string): Promise<void> {
  const generation = await setRegex(mesh, regex);
  await eventually(() => isConverged(mesh, generation), { withinMs: 30_000, everyMs: 50 });
}

function specOf(name: string, regex: string) {
  return {
    selector: { matchLabels: { component: name } },
    configuration: { controller: { leaderElectionName: name } },
    route: { onLoss: "InPlace", subRules: [{ name: "moved", match: [{ namespaceRegex: regex }] }] },
    subsets: [{ name: "v2", labels: { version: "v2" }, routeRules: ["moved"] }],
  };
}
