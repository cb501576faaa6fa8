// The cluster under siege: localkube, the manager, an operator with a webhook in two pods with their
// sidecars, and a tenant of the cluster in a namespace of its own.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createKubeClient } from "../../src/kube/client/client.ts";
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { bundleProxy } from "../support/bundled-proxy.ts";
import { startChild } from "../support/child-process.ts";
import { ROOT } from "../support/mesh/cluster.ts";
import { type ApiServer, readApiServer } from "./api-server.ts";
import type { Endpoint, FakePod } from "./attack.ts";
import { fillCluster, HOME } from "./cluster-objects.ts";
import { createHonestPods, createTenant } from "./fake-pods.ts";
import { type OperatorPod, startOperatorPods } from "./operator-pods.ts";
import { type Build, type Manager, SOURCES, startManager } from "./programs.ts";

export interface World {
  readonly apiServer: ApiServer;
  readonly client: KubeClient;
  readonly manager: Manager;
  /** The pod of the default subset, which is measured, and the canary's. */
  readonly measured: OperatorPod;
  readonly decoy: OperatorPod;
  /** See OperatorPods. */
  readonly control: Endpoint;
  /** Of the operator, and of a tenant. */
  readonly honestPods: readonly FakePod[];
  readonly tenants: readonly FakePod[];
  /** The CA of the manager's certificates. */
  readonly meshCaPem: string;
  stop(): Promise<void>;
}

export interface WorldOptions {
  /** Namespaces without anything in them. */
  readonly namespaces: number;
  /** Compiles the programs, as they are in the images. */
  readonly isCompiled: boolean;
}

export async function startWorld({ namespaces, isCompiled }: WorldOptions): Promise<World> {
  const dir = mkdtempSync(join(tmpdir(), "ctrlmesh-siege-"));
  const cleanUps: (() => unknown)[] = [() => rmSync(dir, { recursive: true, force: true })];
  const stop = async () => {
    for (const cleanUp of cleanUps.splice(0)) await cleanUp();
  };
  try {
    const build = isCompiled ? await compiled(cleanUps) : SOURCES;
    const kube = await startChild({
      name: "localkube",
      command: process.execPath,
      args: [join(ROOT, "test/localkube/main.ts"), "--print-ready", "--dir", dir],
    });
    cleanUps.unshift(() => kube.stop(2_000));
    const apiServer = readApiServer(kube);
    const { server, caPem, token } = apiServer;
    const client = createKubeClient({ server, caPem, token: () => token, userAgent: "ctrlmesh-siege" });
    cleanUps.unshift(() => client.close());
    await fillCluster(client, caPem, namespaces);
    const manager = await startManager(apiServer.kubeconfig, build);
    cleanUps.unshift(() => manager.supervised.stop(3_000));
    const pods = await startOperatorPods({ apiServer, client, manager, dir, build });
    cleanUps.unshift(() => pods.stop());
    const [measured, decoy] = pods.all as [OperatorPod, OperatorPod];
    const honestPods = await createHonestPods(client);
    const tenants = await createTenant(client);
    const ca = await client.get(CONFIG_MAPS, { namespace: HOME, name: "ctrlmesh-ca" });
    const meshCaPem = ca.data?.["mesh.crt"] ?? "";
    return { apiServer, client, manager, measured, decoy, control: pods.control, honestPods, tenants, meshCaPem, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function compiled(cleanUps: (() => unknown)[]): Promise<Build> {
  const { main, remove } = await bundleProxy();
  cleanUps.unshift(remove);
  return { proxyMain: main, managerMain: join(main, "../../manager/main.js") };
}
