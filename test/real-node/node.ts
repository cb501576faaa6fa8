// A Kubernetes node: containerd, kubelet and kube-proxy on a host. They run until the host's namespaces end, so nothing has to be stopped.
import { eventually } from "../support/eventually.ts";
import { kubectl } from "../support/kubectl.ts";
import { makeCgroups } from "./cgroups.ts";
import type { Host } from "./hosts.ts";
import { FURTHER_NAMES } from "./images.ts";
import type { NodePrograms } from "./programs.ts";
import { type ApiServer, createServices, type NodeServices } from "./services.ts";

const READY_MS = 120_000;

export interface RealNode extends Host {
  readonly services: NodeServices;
  /** Runs containerd's command line in the kubelet's namespace. */
  ctr(...args: string[]): Promise<string>;
  /** Starts the services that do not run, and waits until containerd answers and the node is ready. The first time it imports the images. */
  startServices(): Promise<void>;
}

/** @param images archives */
export function createNode(host: Host, programs: NodePrograms, images: readonly string[], api: ApiServer): RealNode {
  makeCgroups(host.folder);
  const services = createServices(host, programs, api);
  const archives = [...images];
  const ctr = (...args: string[]) => host.run(programs.ctr, "--namespace", "k8s.io", ...args);
  return {
    ...host,
    services,
    ctr,
    async startServices() {
      services.start("containerd");
      await eventually(() => ctr("version"), { withinMs: READY_MS, everyMs: 100 });
      if (archives.length > 0) await importImages(ctr, archives.splice(0));
      services.start("kubelet");
      services.start("kube-proxy");
      const args = ["wait", `node/${host.name}`, "--for=condition=Ready", `--timeout=${READY_MS / 1000}s`];
      await eventually(() => kubectl(api.kubeconfig, args), READY_MS).catch((cause: unknown) => {
        throw new Error(`${host.name} is not ready; the kubelet's log ends with\n${services.log("kubelet")}`, { cause });
      });
    },
  };
}

async function importImages(ctr: RealNode["ctr"], archives: readonly string[]): Promise<void> {
  for (const archive of archives) await ctr("images", "import", archive);
  for (const { image, name } of FURTHER_NAMES) await ctr("images", "tag", image, name);
}
