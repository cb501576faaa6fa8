// The service-account tokens of one pod: requested by TokenRequest, bound to the pod, cached, and renewed after four fifths of
// their lifetime, like the kubelet's.
import type { KubeClient } from "../../src/kube/client/types.ts";
import type { NodePod } from "./pod-types.ts";

interface Kept {
  readonly token: string;
  readonly renewAtMs: number;
}

const RENEW_AFTER = 0.8;

export interface PodTokens {
  get(audience: string | undefined, expirationSeconds: number): Promise<string>;
}

export function createPodTokens(client: KubeClient, pod: NodePod): PodTokens {
  const kept = new Map<string, Kept>();
  const { name = "", namespace = "", uid = "" } = pod.metadata;
  return {
    async get(audience, expirationSeconds) {
      const key = `${audience} ${expirationSeconds}`;
      const known = kept.get(key);
      if (known !== undefined && Date.now() < known.renewAtMs) return known.token;
      const { status } = (await client.request({
        method: "POST",
        path: `/api/v1/namespaces/${namespace}/serviceaccounts/${pod.spec.serviceAccountName ?? "default"}/token`,
        body: {
          apiVersion: "authentication.k8s.io/v1",
          kind: "TokenRequest",
          spec: {
            ...(audience === undefined ? {} : { audiences: [audience] }),
            expirationSeconds,
            boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid },
          },
        },
      })) as { status: { token: string; expirationTimestamp: string } };
      const now = Date.now();
      kept.set(key, { token: status.token, renewAtMs: now + RENEW_AFTER * (Date.parse(status.expirationTimestamp) - now) });
      return status.token;
    },
  };
}
