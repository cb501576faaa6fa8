// The dashboard of the demo: the page of `ctrlmesh dashboard`, on the demo's cluster. It needs no kubectl: the sidecars are processes of this
// machine, so their ports need no forwarding. Called by perform.ts.
import { systemClock } from "../../src/base/clock.ts";
import { MeshError } from "../../src/base/errors.ts";
import { directCluster } from "../../src/cli/cluster/direct.ts";
import { openDashboard } from "../../src/cli/dashboard/open-dashboard.ts";
import type { PageServer } from "../../src/cli/dashboard/server.ts";
import type { World } from "./world.ts";

export async function openDemoDashboard(world: World): Promise<PageServer> {
  const { apiServer, setting } = world;
  const { kubeconfig } = apiServer;
  const options = { kubeconfig, context: undefined, as: undefined, requestTimeoutMs: 5_000 };
  const cluster = {
    ...(await directCluster(options)),
    async forward({ name }: { readonly name: string }) {
      const pod = world.pods.find((each) => each.name === name);
      if (pod === undefined) throw new MeshError("NOT_FOUND", `pod ${name} does not run`);
      return { url: pod.proxy.healthUrl, close() {} };
    },
  };
  const access = [`--kubeconfig=${kubeconfig}`];
  const { url, close } = await openDashboard({ cluster, namespace: undefined, access, port: 0, clock: systemClock });
  return { url: `${url}#/map?app=${setting.namespace}/${setting.appName}`, close };
}
