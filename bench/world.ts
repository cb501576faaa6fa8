// The world of the bench: a real control plane, the manager, many ConfigMaps in 200 namespaces, and one proxy
// for each way of server-side filtering.
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";
import { bundleProxy } from "../test/support/bundled-proxy.ts";
import { startChild } from "../test/support/child-process.ts";
import { type Kube, startKube } from "../test/support/kube.ts";
import { createManyConfigMaps } from "../test/support/many-config-maps.ts";
import { type Mesh, type MeshPod, startMesh } from "../test/support/mesh.ts";
import { cpuSecondsOf, memoryOf } from "../test/support/process-memory.ts";
import type { Usage } from "./table.ts";

/** The destination of requests. */
export interface Endpoint {
  readonly url: string;
  readonly caPem: string;
  readonly token: string;
}

/** A proxy of a subset that owns a part of the namespaces. */
export interface Side extends Endpoint {
  readonly pod: MeshPod;
}

export interface World {
  readonly kube: Kube;
  readonly mesh: Mesh;
  readonly direct: Endpoint;
  /** A proxy that only forwards, see bare-proxy.ts. */
  readonly bare: Endpoint;
  /** Owns one namespace of the 200. */
  readonly one: Side;
  /** Owns 20 namespaces: 1 object of 10. */
  readonly tenth: Side;
  /** Owns all but five namespaces. */
  readonly most: Side;
  /** Starts another pod, whose proxy requests go through. */
  addSide(options: Parameters<Mesh["addPod"]>[0]): Promise<Side>;
  /** The resources that the proxy's process used since the last call. */
  usage(side: Side, after: string): Usage;
  stop(): Promise<void>;
}

export const NAMESPACES = 200;
export const OWN_NAMESPACE = namespaceName(0);

export function namespaceName(index: number): string {
  return `bench-${String(index).padStart(3, "0")}`;
}

export interface WorldOptions {
  readonly objects: number;
  readonly featureGates?: string;
  /** Labels of the objects of a namespace. Default none. */
  readonly objectLabels?: (namespace: string) => Readonly<Record<string, string>>;
}

/** Starts everything. `note` receives the progress in words. */
export async function startWorld(options: WorldOptions, note: (text: string) => void): Promise<World> {
  const { objects, featureGates, objectLabels } = options;
  const kube = await startKube(featureGates === undefined ? {} : { featureGates });
  const bundled = await bundleProxy();
  const mesh = await startMesh({ kube, appName: "bench", proxyMain: bundled.main });
  for (let index = 0; index < NAMESPACES; index++) await mesh.createNamespace(namespaceName(index), labelsOf(index));
  await mesh.apply(virtualApp("bench", { one: "one", tenth: "tenth" }));
  await mesh.apply(virtualApp("bench-most", { few: "few" }));
  note(`creating ${objects} ConfigMaps in ${NAMESPACES} namespaces`);
  const namespaces = Array.from({ length: NAMESPACES }, (_, index) => namespaceName(index));
  await createManyConfigMaps(mesh.client, {
    count: objects,
    namespaces,
    ...(objectLabels === undefined ? {} : { labels: objectLabels }),
  });
  const side = async (options: Parameters<Mesh["addPod"]>[0]): Promise<Side> => {
    const pod = await mesh.addPod(options);
    // With the administrator's token, RBAC costs no time.
    return { pod, url: pod.proxyUrl, caPem: pod.proxyCaPem, token: kube.token };
  };
  const bare = await startChild({
    name: "bare proxy",
    command: process.execPath,
    args: [fileURLToPath(new URL("./bare-proxy.ts", import.meta.url)), kube.server, kube.caFile],
  });
  const seen = new Map<Side, { cpu: number; at: number }>();
  return {
    kube,
    mesh,
    direct: { url: kube.server, caPem: kube.caPem, token: kube.token },
    bare: { url: String(bare.ready.url), caPem: String(bare.ready.caPem), token: kube.token },
    one: await side({ name: "bench-one", labels: { subset: "one" } }),
    tenth: await side({ name: "bench-tenth", labels: { subset: "tenth" } }),
    most: await side({ name: "bench-most", app: "bench-most" }),
    addSide: side,
    usage(of, after) {
      const { pid } = of.pod.proxy;
      const before = seen.get(of);
      const now = { cpu: cpuSecondsOf(pid), at: performance.now() };
      seen.set(of, now);
      const { rssMb, peakMb } = memoryOf(pid);
      return {
        after,
        rssMb,
        peakMb,
        cpuSeconds: now.cpu - (before?.cpu ?? 0),
        wallSeconds: before === undefined ? 0 : (now.at - before.at) / 1000,
      };
    },
    async stop() {
      await bare.stop();
      await mesh.stop();
      await kube.stop();
      bundled.remove();
    },
  };
}

function labelsOf(index: number): Record<string, string> {
  if (index === 0) return { one: "in" };
  return { ...(index <= 20 ? { tenth: "in" } : {}), ...(index >= 195 ? { few: "in" } : {}) };
}

/** @param subsets the label of the namespaces that each subset owns, by the subset's name */
function virtualApp(name: string, subsets: Readonly<Record<string, string>>): string {
  const entries = Object.entries(subsets);
  return stringify({
    apiVersion: "ctrlmesh.kruise.io/v1alpha1",
    kind: "VirtualApp",
    metadata: { name, namespace: "foo-system" },
    spec: {
      selector: { matchLabels: { component: name } },
      configuration: { controller: { leaderElectionName: name } },
      route: {
        subRules: entries.map(([subset, label]) => ({
          name: subset,
          match: [{ namespaceSelector: { matchLabels: { [label]: "in" } } }],
        })),
      },
      subsets: entries.map(([subset]) => ({ name: subset, labels: { subset }, routeRules: [subset] })),
    },
  });
}
