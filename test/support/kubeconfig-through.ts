// Kubeconfigs of another cluster, for clients that reach it through the forward proxy of a pod.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import type { Kube } from "./kube.ts";
import type { MeshPod } from "./mesh.ts";
import { createProbe } from "./probe.ts";

export function createKubeconfigs() {
  const folder = mkdtempSync(join(tmpdir(), "kubeconfigs-"));
  let count = 0;
  return {
    folder,
    /** The path of a new kubeconfig. @param cluster its `cluster`: server, CA, proxy-url. @param user its `user` */
    write(cluster: object, user: object): string {
      const file = join(folder, `kubeconfig-${count++}`);
      const config = {
        apiVersion: "v1",
        kind: "Config",
        "current-context": "abroad",
        clusters: [{ name: "abroad", cluster }],
        users: [{ name: "abroad", user }],
        contexts: [{ name: "abroad", context: { cluster: "abroad", user: "abroad" } }],
      };
      writeFileSync(file, stringify(config), { mode: 0o600 });
      return file;
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** The `cluster` of a kubeconfig. */
export function clusterOf({ server, caPem }: Pick<Kube, "server" | "caPem">) {
  return { server, "certificate-authority-data": Buffer.from(caPem).toString("base64") };
}

/** The operator's first request at home, as every operator makes: until then the sidecar has no proof that its pod exists. */
export async function proveHome(pod: MeshPod): Promise<void> {
  const probe = createProbe({ url: pod.proxyUrl, caPem: pod.proxyCaPem, token: pod.token });
  await probe.get("/version");
  await probe.close();
}
