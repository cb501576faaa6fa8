// Who needs the measured sidecar while it is under siege: its operator, with reads and writes through 5443; the API server, with reviews for the
// operator's webhook; and a kubelet.

import { OBJECT } from "../cluster-objects.ts";
import { SERVICE_NAME } from "../operator-pods.ts";
import { review } from "../requests.ts";
import type { World } from "../world.ts";
import { createHttpsClient } from "./https.ts";
import type { HonestClient } from "./pace.ts";

const FOOS = { group: "demo.ctrlmesh.io", version: "v1", resource: "foos" };
/** Their added p99 is judged. */
export const OPERATOR_CLIENTS = ["operator's GET", "operator's PATCH"];

export function sidecarClients({ measured }: World): HonestClient[] {
  const { traffic, target, caPem, operatorCaPem, token } = measured;
  const operator = createHttpsClient({ ...traffic, caPem, serverName: "localhost" });
  const api = createHttpsClient({ ...target.reviews, caPem: operatorCaPem, serverName: SERVICE_NAME });
  const authorization = `Bearer ${token}`;
  const path = `/api/v1/namespaces/${target.namespace}/configmaps/${OBJECT}`;
  return [
    {
      name: "operator's GET",
      everyMs: 20,
      close: () => operator.close(),
      async call(_number, signal) {
        await operator.ask({ path, signal, headers: { authorization } });
      },
    },
    {
      name: "operator's PATCH",
      everyMs: 60,
      async call(number, signal) {
        const body = JSON.stringify({ data: { turn: String(number) } });
        const headers = { authorization, "content-type": "application/merge-patch+json" };
        await operator.ask({ method: "PATCH", path, body, signal, headers });
      },
    },
    {
      name: "webhook review",
      everyMs: 200,
      close: () => api.close(),
      async call(number, signal) {
        const body = review({ resource: FOOS, namespace: target.namespace, object: { metadata: { name: "x" } } });
        const headers = { "content-type": "application/json" };
        await api.ask({ method: "POST", path: "/validate?timeout=10s", body, headers, signal, isNew: number % 4 === 0 });
      },
    },
    {
      name: "sidecar's probe",
      everyMs: 500,
      async call(_number, signal) {
        const { status } = await fetch(`http://${target.health.host}:${target.health.port}/healthz`, { signal });
        if (status !== 200) throw new Error(String(status));
      },
    },
  ];
}
