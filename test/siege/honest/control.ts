// What this machine itself takes: reviews to a server like the operator's, a process that nobody attacks. The judge adds its times to the
// bounds, since a machine with other work makes every process late.

import { SERVICE_NAME } from "../operator-pods.ts";
import { review } from "../requests.ts";
import type { World } from "../world.ts";
import { createHttpsClient } from "./https.ts";
import type { HonestClient } from "./pace.ts";

const FOOS = { group: "demo.ctrlmesh.io", version: "v1", resource: "foos" };

export function controlClient({ control, measured }: World): HonestClient {
  const server = createHttpsClient({ ...control, caPem: measured.operatorCaPem, serverName: SERVICE_NAME });
  const body = review({ resource: FOOS, namespace: "team-a", object: { metadata: { name: "x" } } });
  return {
    name: "control",
    everyMs: 100,
    close: () => server.close(),
    async call(number, signal) {
      await server.ask({ method: "POST", path: "/", body, signal, isNew: number % 4 === 0 });
    },
  };
}
