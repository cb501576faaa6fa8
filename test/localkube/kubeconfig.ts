// Writes a kubeconfig for the admin of a localkube.
import { stringify } from "yaml";

export interface KubeconfigOptions {
  readonly server: string;
  readonly caPem: string;
  readonly token: string;
}

export function createKubeconfig({ server, caPem, token }: KubeconfigOptions): string {
  const name = "localkube";
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { server, "certificate-authority-data": Buffer.from(caPem).toString("base64") } }],
    users: [{ name, user: { token } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: "default" } }],
    "current-context": name,
  });
}
