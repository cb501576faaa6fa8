// The address of one API server and the credentials for it. The token is read again for every request, so a
// rotated service-account token is used immediately.
import type { X509Certificate } from "node:crypto";
import type { Env } from "../../base/env.ts";
import { MeshError } from "../../base/errors.ts";

export interface KubeConnection {
  /** Base URL: scheme, host, port and an optional path prefix. */
  readonly server: string;
  /** The Unix socket of a proxy on this machine, such as `kubectl proxy`; `server` is then http on localhost. */
  readonly socketPath?: string | undefined;
  /** PEM bundle that verifies the server's certificate; the system's roots if absent. */
  readonly caPem?: string | undefined;
  /** The bearer token for the next request; "" for none (client certificates). */
  readonly token: () => Promise<string> | string;
  /** PEM, as `clientKey`. */
  readonly clientCert?: string | undefined;
  readonly clientKey?: string | undefined;
  /** The name that the server's certificate must carry, if it is not the host of `server`. */
  readonly tlsServerName?: string | undefined;
  /** Accepts any certificate; only a kubeconfig can ask for it (`insecure-skip-tls-verify`). */
  readonly skipTlsVerify?: boolean;
  /** A longer answer, or all events of one watch together, is an error. Absent: no bound. For servers that are not trusted. */
  readonly maxAnswerBytes?: number | undefined;
  /** Called with the certificate of the server, for each new connection that is verified. */
  readonly onServerCertificate?: ((certificate: X509Certificate) => void) | undefined;
  readonly userAgent: string;
  /** The namespace of the context, or of the pod; undefined if none is named. */
  readonly namespace?: string | undefined;
}

/** Where the kubelet mounts a pod's service account. */
export const SERVICE_ACCOUNT_DIR = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * The connection that every pod gets from Kubernetes: KUBERNETES_SERVICE_HOST and _PORT, and the mounted
 * service account. Throws MeshError `NOT_IN_CLUSTER` if the variables are not set.
 */
export async function inClusterConnection(
  env: Env,
  readFile: (path: string) => Promise<string>,
  { userAgent, serviceAccountDir = SERVICE_ACCOUNT_DIR }: { readonly userAgent: string; readonly serviceAccountDir?: string },
): Promise<KubeConnection> {
  const host = env.KUBERNETES_SERVICE_HOST;
  const port = env.KUBERNETES_SERVICE_PORT;
  const missing = "connecting in the cluster: KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set";
  if (!host || !port) throw new MeshError("NOT_IN_CLUSTER", missing);
  return {
    server: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
    caPem: await readFile(`${serviceAccountDir}/ca.crt`),
    token: async () => (await readFile(`${serviceAccountDir}/token`)).trim(),
    userAgent,
    namespace: await readFile(`${serviceAccountDir}/namespace`).then(
      (text) => text.trim(),
      () => undefined,
    ),
  };
}
