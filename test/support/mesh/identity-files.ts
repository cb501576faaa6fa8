// The files of the mesh's identity in a pod, as a kubelet projects them: the CA of the managers and a token for them. They are written once, so
// the pod must not outlive its token of an hour.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { CONFIG_MAPS } from "../../../src/kube/client/resources.ts";
import type { KubeClient } from "../../../src/kube/client/types.ts";
import { eventually } from "../eventually.ts";
import { podToken } from "./cluster.ts";

export interface IdentifiedPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** Writes the files into `dir`. @returns the proxy's flags for them, without their dashes */
export async function identityFlags(
  client: KubeClient,
  { namespace, name, uid }: IdentifiedPod,
  dir: string,
): Promise<Record<string, string>> {
  const ca = await eventually(
    async () => (await client.get(CONFIG_MAPS, { namespace, name: "ctrlmesh-ca" })).data?.["mesh.crt"] ?? false,
    30_000,
  );
  const files = { "manager-ca": join(dir, "mesh.crt"), token: join(dir, "mesh-token") };
  writeFileSync(files["manager-ca"], ca);
  writeFileSync(files.token, await podToken(client, namespace, name, uid, ["ctrlmesh"]));
  return { identity: "mesh", ...files };
}
