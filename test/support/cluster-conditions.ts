// The conditions of a MeshCluster on a real control plane.
import { expect } from "vitest";
import { MESH_CLUSTERS } from "../../src/api/resources.ts";
import { eventually } from "./eventually.ts";
import type { Mesh } from "./mesh.ts";

/** By type, as "STATUS REASON". */
export async function conditionsOf({ client, appNamespace }: Mesh, name: string): Promise<Readonly<Record<string, string>>> {
  const { status } = await client.get(MESH_CLUSTERS, { namespace: appNamespace, name });
  return Object.fromEntries((status?.conditions ?? []).map(({ type, status: value, reason }) => [type, `${value} ${reason}`]));
}

export async function clusterReady(mesh: Mesh, name: string, withinMs = 30_000): Promise<void> {
  await eventually(async () => expect((await conditionsOf(mesh, name)).Ready).toMatch(/^True /), withinMs);
}
